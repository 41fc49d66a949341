import type { IncomingMessage } from "node:http";
import { SallyportError } from "../model/errors.ts";
import { parseJson } from "../model/parse-json.ts";
import type { JsonObject } from "../util/json.ts";
import type { Timers } from "../util/timers.ts";

export interface BodyLimits {
  readonly bodyBytes: number;
  readonly bodyMs: number;
}

/**
 * The JSON object in a request's body, {} for none. Counted while it comes in and given up as soon as it is too large or too
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
  // Also what keeps an HTML form of another page out: forms cannot say this type.
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
