import type { JsonLimits, JsonValue } from "../util/json.ts";
import { JsonError } from "../util/json-error.ts";
import { parseStrictJson } from "../util/strict-json.ts";
import { SallyportError } from "./errors.ts";

const MAX_NAME = 512;

/**
 * Names end up as keys, in hashes and on screens, so they must be the same text everywhere: no control characters (one
 * engine cannot store NUL), no half characters (two different ones would hash alike), no surprises of length.
 */
export function checkName(what: string, name: unknown): asserts name is string {
  if (isName(name)) return;
  if (typeof name !== "string" || name === "") {
    throw new SallyportError("invalid_input", { what, hint: `Give a non-empty ${what}.` });
  }
  if (name.length > MAX_NAME) {
    const hint = `Shorten the ${what} to ${MAX_NAME} characters.`;
    throw new SallyportError("invalid_input", { what, length: name.length, hint });
  }
  const hint = `Remove control characters and lone surrogates from the ${what}.`;
  throw new SallyportError("invalid_input", { what, hint });
}

/** What is no name cannot be the id of anything either. */
export function isName(name: unknown): name is string {
  if (typeof name !== "string" || name === "" || name.length > MAX_NAME) return false;
  return name.isWellFormed() && !hasControl(name);
}

/**
 * What a reader takes for the same name: without case, spaces, wide forms and invisible marks. Only ever used to refuse:
 * names that fold alike are still different names.
 */
export function foldName(name: string): string {
  return name
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[\s\p{Default_Ignorable_Code_Point}]/gu, "");
}

function hasControl(name: string): boolean {
  for (let i = 0; i < name.length; i += 1) {
    const code = name.charCodeAt(i);
    if (code < 0x20 || code === 0x7f) return true;
  }
  return false;
}

/** A moment as ISO 8601 text in UTC with milliseconds: sortable in every store and stable when hashed. */
export type Instant = string;

const TOO_LARGE: readonly string[] = ["too_large", "too_deep", "too_many_nodes"];

/**
 * Reads JSON that comes from outside, once and strictly: what two readers could understand in two ways is refused. Throws
 * invalid_json, payload_too_large.
 *
 *     const input = parseJson('{"cents": 900}');
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
