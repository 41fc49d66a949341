// JSON-RPC messages as they are on the wire. A message is read to be routed, and its own text is what is passed on: the
// gateway has no model of MCP that could lose a field.

import { parseJson } from "../model/names.ts";
import { errorText } from "../util/error-text.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../util/json.ts";

export type MessageId = string | number;

interface Read {
  /** One line, without its end. */
  readonly raw: string;
}

export interface RequestMessage extends Read {
  readonly kind: "request";
  readonly id: MessageId;
  readonly method: string;
  readonly params: JsonObject;
}

export interface NotificationMessage extends Read {
  readonly kind: "notification";
  readonly method: string;
  readonly params: JsonObject;
}

export interface ResponseMessage extends Read {
  readonly kind: "response";
  readonly id: MessageId;
  readonly result?: JsonObject;
  readonly error?: JsonObject;
  /** The status under which an upstream sent it over HTTP. */
  readonly status?: number;
}

export type Message = RequestMessage | NotificationMessage | ResponseMessage;

/** Why a message cannot be routed, and the request it answers if that is known. */
export class BadMessageError extends Error {
  override readonly name = "BadMessageError";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export const RPC = {
  parse: -32700,
  invalid: -32600,
  unknownMethod: -32601,
  invalidParams: -32602,
  internal: -32603,
  /** A header of an HTTP request says something else than its body. */
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/** Large enough for a file or an image in one message. */
export const LARGEST_MESSAGE = 16 * 1024 * 1024;
const LIMITS = { maxBytes: LARGEST_MESSAGE, maxDepth: 128, maxNodes: 1_000_000 } as const;

const FIELDS: ReadonlySet<string> = new Set([
  "jsonrpc",
  "id",
  "method",
  "params",
  "result",
  "error",
]);

/**
 * Reads what a client sent. Everything that the upstream could read in another way than the gate is refused: a key that
 * occurs twice, names that differ only in case (some parsers ignore it), several messages in one. Line breaks between tokens
 * become spaces, so that no reader of lines sees two messages. Throws BadMessageError.
 */
export function readClientMessage(given: string | Uint8Array): Message {
  let value: JsonValue;
  try {
    value = parseJson(given, LIMITS);
  } catch (error) {
    throw new BadMessageError(RPC.parse, `The message cannot be read: ${errorText(error)}`);
  }
  if (!isJsonObject(value)) {
    throw new BadMessageError(RPC.invalid, "Send one JSON-RPC message at a time, as an object.");
  }
  const odd = Object.keys(value).find((key) => !FIELDS.has(key));
  if (odd !== undefined) {
    const hint = `The message has the unknown field ${JSON.stringify(odd.slice(0, 80))}.`;
    throw new BadMessageError(RPC.invalid, hint);
  }
  const text = typeof given === "string" ? given : Buffer.from(given).toString("utf8");
  return messageOf(value, text.replace(/[\r\n]+/g, " ").trim());
}

/** Reads what an upstream sent. Throws BadMessageError. */
export function readUpstreamMessage(text: string): Message {
  if (text.length > LARGEST_MESSAGE) {
    throw new BadMessageError(
      RPC.invalid,
      `The message is larger than ${LARGEST_MESSAGE} characters.`,
    );
  }
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new BadMessageError(RPC.parse, `The message cannot be read: ${errorText(error)}`);
  }
  if (!isJsonObject(value)) throw new BadMessageError(RPC.invalid, "The message is not an object.");
  return messageOf(value, text.replace(/[\r\n]+/g, " ").trim());
}

function messageOf(value: JsonObject, raw: string): Message {
  const { jsonrpc, id, method, params = {}, result, error } = value;
  if (jsonrpc !== "2.0") throw new BadMessageError(RPC.invalid, 'jsonrpc must be "2.0".');
  if (id !== undefined && !isMessageId(id)) {
    throw new BadMessageError(RPC.invalid, "id must be a text or a whole number.");
  }
  if (method === undefined) {
    const isOne = (result === undefined) !== (error === undefined);
    const given = result ?? error;
    if (id === undefined || !isOne || !isJsonObject(given)) {
      throw new BadMessageError(
        RPC.invalid,
        "A response has an id and either a result or an error.",
      );
    }
    return result === undefined
      ? { kind: "response", raw, id, error: given }
      : { kind: "response", raw, id, result: given };
  }
  if (typeof method !== "string" || result !== undefined || error !== undefined) {
    throw new BadMessageError(RPC.invalid, "A request has a method and no result.");
  }
  if (!isJsonObject(params)) throw new BadMessageError(RPC.invalid, "params must be an object.");
  return id === undefined
    ? { kind: "notification", raw, method, params }
    : { kind: "request", raw, id, method, params };
}

function isMessageId(id: JsonValue): id is MessageId {
  return typeof id === "string" ? id.length <= 1_000 : Number.isSafeInteger(id);
}

export function requestMessage(id: MessageId, method: string, params: JsonObject): RequestMessage {
  const raw = JSON.stringify({ jsonrpc: "2.0", id, method, params });
  return { kind: "request", raw, id, method, params };
}

export function notificationMessage(method: string, params: JsonObject = {}): NotificationMessage {
  const raw = JSON.stringify({ jsonrpc: "2.0", method, params });
  return { kind: "notification", raw, method, params };
}

export function resultMessage(id: MessageId, result: JsonObject): ResponseMessage {
  return { kind: "response", raw: JSON.stringify({ jsonrpc: "2.0", id, result }), id, result };
}

export function errorMessage(
  id: MessageId | null,
  code: number,
  message: string,
  data?: JsonObject,
): ResponseMessage {
  const error: JsonObject = { code, message, ...(data === undefined ? {} : { data }) };
  const raw = JSON.stringify({ jsonrpc: "2.0", id, error });
  return { kind: "response", raw, id: id ?? "", error };
}

/** The same request with other parameters. */
export function withParams({ id, method }: RequestMessage, params: JsonObject): RequestMessage {
  return requestMessage(id, method, params);
}

/** The same message under another id: unchanged where it has that id already. */
export function withId(response: ResponseMessage, id: MessageId): ResponseMessage {
  if (response.id === id) return response;
  if (response.error !== undefined) {
    const { error } = response;
    return { ...response, id, raw: JSON.stringify({ jsonrpc: "2.0", id, error }) };
  }
  return { ...resultMessage(id, response.result ?? {}), ...statusOf(response) };
}

function statusOf({ status }: ResponseMessage) {
  return status === undefined ? {} : { status };
}

/** The `_meta` of a request; empty when there is none. */
export function metaOf({ params }: { readonly params: JsonObject }): JsonObject {
  const meta = params["_meta"];
  return isJsonObject(meta) ? meta : {};
}

/** Set on every request of the stateless era (2026-07-28 and later); there is no handshake in it. */
export const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";
export const CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities";

export function isStateless(request: { readonly params: JsonObject }): boolean {
  return typeof metaOf(request)[VERSION_KEY] === "string";
}

/** The request without the claim that the client can do these things (`roots`, `sampling`, …), in both eras of the protocol. */
export function withoutCapabilities(
  request: RequestMessage,
  names: readonly string[],
): RequestMessage {
  const { params } = request;
  const meta = params["_meta"];
  const inMeta = isJsonObject(meta) ? meta[CAPABILITIES_KEY] : undefined;
  const inParams = request.method === "initialize" ? params["capabilities"] : undefined;
  const claims = (given: JsonValue | undefined): given is JsonObject =>
    isJsonObject(given) && names.some((name) => Object.hasOwn(given, name));
  if (!claims(inMeta) && !claims(inParams)) return request;
  const next: JsonObject = { ...params };
  if (claims(inParams)) next["capabilities"] = without(inParams, names);
  if (claims(inMeta) && isJsonObject(meta)) {
    next["_meta"] = { ...meta, [CAPABILITIES_KEY]: without(inMeta, names) };
  }
  return withParams(request, next);
}

/** The object without these names. */
export function without(given: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(given).filter(([name]) => !names.includes(name)));
}
