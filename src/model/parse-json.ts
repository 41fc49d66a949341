import type { JsonLimits, JsonValue } from "../util/json.ts";
import { JsonError } from "../util/json-error.ts";
import { parseStrictJson } from "../util/strict-json.ts";
import { SallyportError } from "./errors.ts";

const TOO_LARGE: readonly string[] = ["too_large", "too_deep", "too_many_nodes"];

/**
 * Reads JSON that comes from outside, once and strictly: what two readers could understand in two ways is refused. Throws
 * invalid_json, payload_too_large.
 */
export function parseJson(text: string | Uint8Array, limits?: JsonLimits): JsonValue {
  try {
    return parseStrictJson(text, limits);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const { reason, at, path, message: hint } = error;
    const code = TOO_LARGE.includes(reason) ? "payload_too_large" : "invalid_json";
    throw new SallyportError(code, { reason, at, path, hint }, error);
  }
}
