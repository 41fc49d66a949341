/** A parsed shell command: every program it can run. */
export interface ShellScript {
  readonly parts: readonly ShellPart[];
  /** Files that the shell itself opens. */
  readonly redirects: readonly ShellRedirect[];
  /** Why no rule can allow the whole, each as the rest of a sentence. */
  readonly blocks: readonly string[];
  /** Dangers of the combination of its parts. */
  readonly structures: readonly StructureDanger[];
}

/** One program that runs. */
export interface ShellPart {
  /** The program that finally runs. */
  readonly words: readonly ShellWord[];
  /** Its wrappers, outermost first, each with all its words. */
  readonly wrappers: readonly (readonly ShellWord[])[];
  /** Why no rule can allow it, each as the rest of a sentence. */
  readonly blocks: readonly string[];
  /** It only joins other commands: it needs no rule and allows nothing, but can be denied like any other. */
  readonly isGlue: boolean;
  /** The folder it runs in, as far as the text shows; undefined for the tool's starting folder. */
  readonly folder: string | undefined;
}

export interface ShellRedirect {
  readonly target: ShellWord;
  readonly access: "read" | "write";
  readonly folder: string | undefined;
}

export type StructureDanger = "code-from-network" | "code-from-decoder" | "fork-bomb";

/** One word of a command after quote removal. */
export interface ShellWord {
  /**
   * The value that the program gets. Where only the shell knows it, the best text for finding dangers: `~` for the home
   * folder, wildcards as written, and a null character for the rest.
   */
  readonly text: string;
  /** False when the shell replaces it: variables, substitutions, wildcards, braces, `~`. */
  readonly known: boolean;
}

export const UNKNOWN = "\0";

export const UNKNOWN_TOKEN: ShellWord = Object.freeze({ text: UNKNOWN, known: false });

/** `rm` for `/bin/rm`, `./rm` and `rm`. */
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The name of a program in the tables: dangers ignore its folder and case. */
export function programName(token: ShellWord | undefined): string {
  return baseName(token?.text ?? "").toLowerCase();
}

/** Longer commands are programs that a person should read. */
const LONGEST = 16 * 1024;
const MOST_LINES = 500;

/**
 * The parser looks ahead from each opening bracket, so its time grows with openings times length: 16 KiB of `$[` took
 * 2.5 s on a busy machine. Within this budget the worst known input takes less than 20 ms of CPU time.
 */
const MOST_WORK = 200_000;
const MOST_OPENINGS = 256;

/** Why a command cannot be inspected, as the rest of a sentence; undefined when it can. */
export function inspectionProblem(command: string): string | undefined {
  if (command.trim() === "") return "it is empty";
  if (command.length > LONGEST) return `it is longer than ${LONGEST} characters`;
  if (!command.isWellFormed()) return "it holds half of a surrogate pair";
  // Characters that a reviewer cannot see, or sees in another order, may mean anything; shells also disagree about
  // some.
  if (/[^\P{Cc}\n\t]|\p{Cf}|[^\P{Z} ]/u.test(command)) {
    return "it holds control characters, invisible characters or unusual spaces";
  }
  const openings = command.match(/[$<>!@?+*]?[([{]|`|<<|"/g)?.length ?? 0;
  const lines = command.match(/\n/g)?.length ?? 0;
  if (openings * command.length > MOST_WORK || openings > MOST_OPENINGS || lines > MOST_LINES) {
    return "it has too many brackets, quotes or lines for its length";
  }
  return undefined;
}

/** The folder of a script after this command; only `cd` changes it. Unknown folders contain a null character. */
export function changeFolder(
  words: readonly ShellWord[],
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
  words: readonly ShellWord[],
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
