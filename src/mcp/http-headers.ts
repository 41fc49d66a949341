// What Streamable HTTP says in headers besides the message: the era of the protocol, and copies of the method, the name and
// some arguments, by which servers and proxies may route. A header that says something else than the body is refused.

import { isJsonObject, type JsonObject, type JsonValue } from "../util/json.ts";
import {
  CAPABILITIES_KEY,
  errorMessage,
  type Message,
  metaOf,
  type RequestMessage,
  type ResponseMessage,
  RPC,
  VERSION_KEY,
} from "./message.ts";

/** The revisions with a handshake and sessions. Every other one is stateless. */
const WITH_HANDSHAKE: ReadonlySet<string> = new Set([
  "2024-11-05",
  "2025-03-26",
  "2025-06-18",
  "2025-11-25",
]);

/** One header of a request, or undefined. Shape: callback. */
export type HeaderOf = (name: string) => string | undefined;

/** Whether a message belongs to the stateless era, by its body or, where the body does not say, by its header. */
export function isStatelessPost(message: Message, header: HeaderOf): boolean {
  if (message.kind === "response") return false;
  if (typeof metaOf(message)[VERSION_KEY] === "string") {
    return !WITH_HANDSHAKE.has(String(metaOf(message)[VERSION_KEY]));
  }
  const version = header("mcp-protocol-version");
  return version !== undefined && !WITH_HANDSHAKE.has(version);
}

/** Where the body has what `Mcp-Name` repeats. */
const NAMED: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};

function nameIn({ method, params }: RequestMessage): string | undefined {
  const field = Object.hasOwn(NAMED, method) ? NAMED[method] : undefined;
  const value = field === undefined ? undefined : params[field];
  return typeof value === "string" ? value : undefined;
}

/** The answer to a stateless request whose envelope or headers are wrong; undefined when they fit. */
export function headerProblem(
  request: RequestMessage,
  header: HeaderOf,
): ResponseMessage | undefined {
  const refuse = (code: number, text: string): ResponseMessage => ({
    ...errorMessage(request.id, code, text),
    status: 400,
  });
  const mismatch = (text: string) => refuse(RPC.headerMismatch, text);
  const meta = metaOf(request);
  const version = meta[VERSION_KEY];
  const given = header("mcp-protocol-version");
  const method = header("mcp-method");
  if (typeof version === "string" && given !== version) {
    return mismatch(`MCP-Protocol-Version is ${quoted(given)}, the message says "${version}".`);
  }
  if (method !== request.method) {
    return mismatch(`Mcp-Method is ${quoted(method)}, the message says "${request.method}".`);
  }
  const name = nameIn(request);
  const named = header("mcp-name");
  if (name !== undefined && decoded(named) !== name) {
    return mismatch(`Mcp-Name is ${quoted(named)}, the message says ${quoted(name)}.`);
  }
  if (typeof version !== "string") {
    return refuse(RPC.invalidParams, `_meta needs "${VERSION_KEY}".`);
  }
  if (!isJsonObject(meta[CAPABILITIES_KEY])) {
    return refuse(RPC.invalidParams, `_meta needs "${CAPABILITIES_KEY}".`);
  }
  return undefined;
}

/** The headers of a stateless request to an upstream, made from its body. */
export function headersOf(request: RequestMessage): Record<string, string> {
  const version = metaOf(request)[VERSION_KEY];
  if (typeof version !== "string") return {};
  const name = nameIn(request);
  return {
    "mcp-protocol-version": encoded(version),
    "mcp-method": encoded(request.method),
    ...(name === undefined ? {} : { "mcp-name": encoded(name) }),
  };
}

/** An argument that a tool's schema wants repeated as `Mcp-Param-…`. */
export interface HeaderParam {
  readonly path: readonly string[];
  readonly header: string;
}

/** RFC 9110: what a header may be called. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}$/;
const MOST_PARAMS = 100;

/** The arguments with `x-mcp-header` in a schema; those that are declared wrongly are left out. */
export function headerParamsOf(schema: JsonValue | undefined): readonly HeaderParam[] {
  const found = new Map<string, HeaderParam>();
  const visit = (given: JsonValue | undefined, path: readonly string[]): void => {
    if (!isJsonObject(given) || path.length > 16 || found.size >= MOST_PARAMS) return;
    const header = given["x-mcp-header"];
    const isPlain = ["string", "integer", "number", "boolean"].includes(String(given["type"]));
    if (typeof header === "string" && TOKEN.test(header) && isPlain && path.length > 0) {
      const key = header.toLowerCase();
      if (!found.has(key)) found.set(key, { path, header: `mcp-param-${key}` });
    }
    const { properties } = given;
    if (!isJsonObject(properties)) return;
    for (const [name, one] of Object.entries(properties)) visit(one, [...path, name]);
  };
  visit(schema, []);
  return [...found.values()];
}

/** The `Mcp-Param-…` headers of one call. */
export function paramHeaders(
  params: readonly HeaderParam[],
  input: JsonObject,
): Record<string, string> {
  return Object.fromEntries(
    params.flatMap(({ path, header }) => {
      const text = textAt(input, path);
      return text === undefined ? [] : [[header, encoded(text)]];
    }),
  );
}

/** The answer to a call whose `Mcp-Param-…` headers say something else than its arguments; undefined when they fit. */
export function paramProblem(
  { id }: RequestMessage,
  params: readonly HeaderParam[],
  input: JsonObject,
  header: HeaderOf,
): ResponseMessage | undefined {
  for (const { path, header: name } of params) {
    const text = textAt(input, path);
    if (text === undefined) continue;
    const given = decoded(header(name));
    const isSame = given === text || (isDecimal(given) && Number(given) === Number(text));
    if (isSame) continue;
    const message = `The header ${name} does not repeat the argument "${path.join(".")}".`;
    return { ...errorMessage(id, RPC.headerMismatch, message), status: 400 };
  }
  return undefined;
}

function isDecimal(text: string | undefined): boolean {
  return text !== undefined && /^-?\d{1,15}(\.\d{1,15})?$/.test(text);
}

function textAt(input: JsonValue | undefined, path: readonly string[]): string | undefined {
  const found = path.reduce<JsonValue | undefined>(
    (at, key) => (isJsonObject(at) && Object.hasOwn(at, key) ? at[key] : undefined),
    input,
  );
  const isPlain = ["string", "number", "boolean"].includes(typeof found);
  return isPlain ? String(found) : undefined;
}

const BASE64 = /^=\?base64\?((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)\?=$/;

/** A text that may stand in a header: as it is, or in Base64 where it holds anything else than plain ASCII. */
function encoded(text: string): string {
  const isSafe = /^[\x20-\x7e\t]+$/.test(text) && text === text.trim() && !text.startsWith("=?");
  return isSafe ? text : `=?base64?${Buffer.from(text, "utf8").toString("base64")}?=`;
}

/** The inverse; undefined for what is not a valid encoding. */
function decoded(header: string | undefined): string | undefined {
  const given = header?.replace(/^[ \t]+|[ \t]+$/g, "");
  if (given === undefined || !(given.startsWith("=?base64?") && given.endsWith("?="))) return given;
  const bytes = BASE64.exec(given)?.[1];
  if (bytes === undefined) return undefined;
  const text = Buffer.from(bytes, "base64").toString("utf8");
  return text.includes("\ufffd") ? undefined : text;
}

function quoted(text: string | undefined): string {
  return text === undefined ? "missing" : JSON.stringify(text.slice(0, 200));
}

/** Errors of JSON-RPC that are errors of HTTP too, where an upstream has no status of its own. */
const STATUS: Readonly<Record<string, number>> = {
  [RPC.parse]: 400,
  [RPC.invalid]: 400,
  [RPC.unknownMethod]: 404,
  [RPC.headerMismatch]: 400,
  [RPC.missingCapability]: 400,
  [RPC.unsupportedVersion]: 400,
};

/** The status of an answer over HTTP. In the era with a handshake every answer to a request is a success of HTTP. */
export function statusOf({ status, error }: ResponseMessage, isStateless: boolean): number {
  if (status !== undefined) return status;
  if (error === undefined || !isStateless) return 200;
  return STATUS[String(error["code"])] ?? 200;
}
