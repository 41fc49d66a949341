import type { Token } from "./token.ts";

/**
 * Variables that change how output looks and nothing else. Every other one may choose a program, a library, a
 * configuration or a target for what follows (PATH, LD_PRELOAD, GIT_SSH_COMMAND, NODE_OPTIONS, KUBECONFIG …) or is text
 * that a shell evaluates (PS4, ENV, BASH_ENV, PROMPT_COMMAND), and new ones are invented daily, so the list names the
 * harmless ones.
 */
// biome-ignore format: a list
const HARMLESS: ReadonlySet<string> = new Set([
  "CI", "CLICOLOR", "COLUMNS", "FORCE_COLOR", "LANG", "LINES", "NO_COLOR", "TERM", "TZ",
  "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME",
]);

/** Why a script that sets this cannot be understood, as the rest of a sentence; undefined when it is harmless. */
export function assignmentProblem(name: string, value: Token): string | undefined {
  if (!HARMLESS.has(name)) return `it sets the variable ${name.slice(0, 40)}`;
  return isSafeValue(value) ? undefined : `the value it gives ${name} is not a plain word`;
}

/** A value is text that a shell may evaluate later, so it holds nothing that means anything to one. */
function isSafeValue({ text, known }: Token): boolean {
  return known && /^[\w.:/@+-]*$/.test(text);
}
