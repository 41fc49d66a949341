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
