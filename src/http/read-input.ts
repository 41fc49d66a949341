import type { IncomingMessage } from "node:http";
import type { z } from "zod";
import { SallyportError } from "../model/errors.ts";
import { parseJson } from "../model/parse-json.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import type { Timers } from "../util/timers.ts";
import type { Route } from "./route.ts";

/** Query values are text; the schema says which are numbers and lists. */
export function queryInput(route: Route, query: Readonly<Record<string, string[]>>): JsonObject {
  const input: JsonObject = {};
  for (const [field, texts] of Object.entries(query)) {
    const schema = Object.hasOwn(route.input.shape, field) ? route.input.shape[field] : undefined;
    input[field] = queryValue(schema, texts);
  }
  return input;
}

function queryValue(schema: z.core.$ZodType | undefined, texts: readonly string[]): JsonValue {
  const type = schema === undefined ? "string" : innerType(schema);
  if (type === "array") return [...texts];
  const [text = ""] = texts;
  if (texts.length > 1) throw invalid("query", "Give each name in the query once.");
  if (type === "number" && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}

function innerType(schema: z.core.$ZodType): string {
  const { def } = schema._zod;
  const inner = (def as { innerType?: z.core.$ZodType }).innerType;
  return inner === undefined ? def.type : innerType(inner);
}

/** Path, query or body as one checked value. Throws invalid_input with the location of the error, never with the value. */
export function checkedInput(
  route: Route,
  params: Readonly<Record<string, string>>,
  rest: JsonObject,
): Record<string, unknown> {
  const twice = Object.keys(params).find((param) => Object.hasOwn(rest, param));
  if (twice !== undefined) throw invalid(twice, `Say ${twice} in the path only.`);
  const result = route.input.safeParse({ ...rest, ...params });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue?.path.map(String).join(".") || "input";
  throw invalid(where.slice(0, 200), hintOf(issue));
}

/** zod's messages are used where they name only types and limits. */
function hintOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue === undefined) return "The input is invalid.";
  if (issue.code === "unrecognized_keys") {
    const keys = issue.keys.slice(0, 5).map((key) => JSON.stringify(key.slice(0, 60)));
    return `Unknown fields: ${keys.join(", ")}. Leave them out.`;
  }
  return `${issue.message}.`;
}

function invalid(what: string, hint: string): SallyportError {
  return new SallyportError("invalid_input", { what, hint });
}

export interface BodyLimits {
  readonly bodyBytes: number;
  readonly bodyMs: number;
}

/**
 * The JSON object in a request's body, {} for none. Counted while it is received and aborted as soon as it is too large or too
 * slow; parsed once, strictly. Throws payload_too_large, invalid_json, invalid_input.
 */
export async function readBody(
  request: IncomingMessage,
  limits: BodyLimits,
  timers: Timers,
): Promise<JsonObject> {
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > limits.bodyBytes) throw tooLarge(limits.bodyBytes);
  const bytes = await readBytes(request, limits, timers);
  if (bytes.length === 0) return {};
  const type = request.headers["content-type"] ?? "";
  // This also blocks HTML forms of other pages: forms cannot send this type.
  if (!/^application\/json(?:\s*;\s*charset=utf-8)?$/i.test(type)) {
    const hint = "Send the body as application/json.";
    throw new SallyportError("invalid_input", { what: "content-type", hint });
  }
  const value = parseJson(bytes, { maxBytes: limits.bodyBytes });
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new SallyportError("invalid_input", { what: "body", hint: "Send one JSON object." });
  }
  return value;
}

/** The body of a form, as text. */
export async function readForm(
  request: IncomingMessage,
  limits: BodyLimits,
  timers: Timers,
): Promise<URLSearchParams> {
  return new URLSearchParams((await readBytes(request, limits, timers)).toString("utf8"));
}

function readBytes(request: IncomingMessage, limits: BodyLimits, timers: Timers): Promise<Buffer> {
  const { bodyBytes, bodyMs } = limits;
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  const stopWaiting = timers.after(bodyMs, () => {
    const hint = `Send the whole body within ${bodyMs} ms.`;
    fail(new SallyportError("invalid_input", { what: "body", hint }));
  });
  function fail(error: Error): void {
    stopWaiting();
    request.removeAllListeners("data");
    reject(error);
  }
  request.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > bodyBytes) fail(tooLarge(bodyBytes));
    else chunks.push(chunk);
  });
  request.on("end", () => {
    stopWaiting();
    resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
  });
  const cutOff = () => fail(new SallyportError("invalid_input", { what: "body", hint: CUT_OFF }));
  request.on("error", cutOff);
  request.on("close", () => {
    if (!request.complete) cutOff();
  });
  return promise;
}

const CUT_OFF = "The body ended too early. Send the request again.";

function tooLarge(limit: number): SallyportError {
  const hint = "Send less, or a reference to the data instead of the data.";
  return new SallyportError("payload_too_large", { limit, hint });
}
