import { matchText, matchWithGaps } from "./wildcard.ts";

/**
 * A path as its names, the root first: `/a/b` is `["", "a", "b"]`, `C:\a` is `["C:", "a"]`. Undefined for what is not
 * absolute or not resolved to the end (`.`, `..`, empty names, a null character): such a path is never compared.
 */
export function segmentsOf(path: string): readonly string[] | undefined {
  if (path.includes("\0")) return undefined;
  const isWindows = /^[A-Za-z]:[\\/]/.test(path);
  if (!isWindows && !path.startsWith("/")) return undefined;
  const segments = path.split(isWindows ? /[\\/]/ : "/");
  if (segments.at(-1) === "") segments.pop();
  if (segments.length === 0) return undefined;
  const isPlain = (name: string) => name !== "" && name !== "." && name !== "..";
  return segments.slice(1).every(isPlain) ? segments : undefined;
}

/** True for the folder itself and everything below it, name by name: `/work` does not hold `/workshop`. */
export function isWithin(path: readonly string[], folder: readonly string[]): boolean {
  return folder.length <= path.length && folder.every((name, index) => name === path[index]);
}

/**
 * A path against a pattern by whole names: `*` inside a name stands for any characters of that one name, a name `**` for
 * any number of names, none included. `/work/**` therefore holds `/work` as well.
 */
export function matchPath(path: readonly string[], pattern: readonly string[]): boolean {
  return matchWithGaps(path, pattern, {
    isGap: (piece) => piece === "**",
    fits: (piece, name) => matchText(name, piece),
  });
}

/** The names of a pattern up to its first wildcard: what an index can look it up by. */
export function literalStart(pattern: readonly string[]): readonly string[] {
  const wild = pattern.findIndex((name) => name.includes("*"));
  return wild < 0 ? pattern : pattern.slice(0, wild);
}

/** What is wrong with a path pattern, as the rest of a sentence. */
export function pathPatternProblem(pattern: string): string | undefined {
  if (pattern.length > 4096) return "is longer than 4096 characters";
  const segments = segmentsOf(pattern);
  if (segments === undefined) {
    return 'must be an absolute path such as "/work/**", without ".", ".." and empty names';
  }
  const odd = segments.find((name) => name.includes("**") && name !== "**");
  return odd === undefined ? undefined : 'may use "**" only as a whole name';
}
