import { programName, type Token, UNKNOWN } from "./script.ts";

/** The folder of a script after this command; only `cd` changes it. Unknown folders contain a null character. */
export function changeFolder(
  words: readonly Token[],
  folder: string | undefined,
): string | undefined {
  if (programName(words[0]) !== "cd") return folder;
  const target = words.slice(1).find(({ text }) => !text.startsWith("-"))?.text ?? "~";
  return resolveIn(folder, target);
}

/** Resolves a path against a folder, with `.` and `..` resolved textually: sufficient to find dangers. */
export function resolveIn(folder: string | undefined, path: string): string {
  const isRooted = path.startsWith("/") || path.startsWith("~");
  const start = isRooted ? [] : (folder ?? UNKNOWN).split("/");
  const names: string[] = [];
  for (const name of [...start, ...path.split("/")]) {
    if (name === "" || name === ".") continue;
    if (name === "..") names.pop();
    else names.push(name);
  }
  const isFromRoot = isRooted ? path.startsWith("/") : folder?.startsWith("/") === true;
  return isFromRoot ? `/${names.join("/")}` : names.join("/");
}

/**
 * Why no rule may allow this `cd`, as the rest of a sentence; undefined for one that is understood, or another command.
 */
export function moveProblem(
  words: readonly Token[],
  folder: string | undefined,
): string | undefined {
  if (programName(words[0]) !== "cd") return undefined;
  // Each of them may fail, and the script then continues in the old folder.
  if (folder !== undefined) return "it changes the folder more than once";
  const isFollowed = words.length <= 2 && words[1]?.text.startsWith("-") !== true;
  return isFollowed ? undefined : ASTRAY;
}

export const ASTRAY = "where one of its paths leads cannot be seen from its letters";

/** Links with a different target for each process, as a folder and a name in it. */
const DOORS: readonly (readonly [RegExp, RegExp])[] = [
  [/^proc$/i, /^(self|thread-self|\d+)$/i],
  [/^dev$/i, /^(fd|core)$/i],
  // The whole disk under another name on macOS.
  [/^system$/i, /^volumes$/i],
  [/^/, /^\.vol$/i],
];

/**
 * True when only the file system knows where a word leads, if it is a path: it contains `..` after a folder that may be
 * a link (`/var/run/..`), or one of these links (`/proc/self/root`, `/dev/fd`).
 */
export function goesAstray(folder: string | undefined, text: string): boolean {
  // The path in `--file=/x`, `a:/x` and `@/x`; in `-I/x` the option counts as one more folder, which changes nothing.
  const path = text.replace(/^[^/]*[=:@,]/, "");
  const start = path.startsWith("/") ? [] : (folder ?? "").split("/");
  let before = "";
  for (const name of [...start, ...path.split("/")]) {
    if (name === "" || name === ".") continue;
    if (name === ".." && before !== "" && before !== "..") return true;
    if (DOORS.some(([parent, child]) => parent.test(before) && child.test(name))) return true;
    before = name;
  }
  return false;
}

/** `/etc/x` for `/proc/self/root/etc/x`. */
export function behindRoot(path: string): string {
  const door = /^\/proc\/(self|thread-self|\d+)(\/task\/\d+)?\/root(?=\/|$)/i;
  let rest = path;
  while (door.test(rest)) rest = rest.replace(door, "");
  return rest === "" ? "/" : rest;
}
