import type { Token } from "./token.ts";

/** Words of the shell that join commands and do nothing by themselves: they need no rule and allow nothing. */
const GLUE: ReadonlySet<string> = new Set([
  ":",
  "true",
  "false",
  "break",
  "continue",
  "exit",
  "return",
  "pwd",
  "wait",
]);

export function isGlue(words: readonly Token[]): boolean {
  const [name, ...rest] = words.map(({ text }) => text);
  if (name === undefined || words.some(({ known }) => !known)) return false;
  if (GLUE.has(name)) return true;
  if (name === "set") return rest.every((word) => /^[-+][eux]+o?$|^pipefail$/.test(word));
  // `-v` and `-R` evaluate what stands in brackets, programs included: test -v 'a[$(id)]'.
  if (name === "test" || name === "[") return rest.every((word) => !/^-[vR]$|[$`[]/.test(word));
  if (name === "command") return /^-p?[vV]$/.test(rest[0] ?? "");
  return false;
}
