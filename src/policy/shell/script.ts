/** A shell command taken apart: every program it can run, wherever it stands. */
export interface ShellScript {
  readonly parts: readonly ShellPart[];
  /** Files that the shell itself opens. */
  readonly redirects: readonly ShellRedirect[];
  /** Why no rule can allow it as a whole, each as the rest of a sentence. */
  readonly blocks: readonly string[];
  /** Dangers that lie in how the parts are joined. */
  readonly structures: readonly StructureDanger[];
}

/** One program that runs. */
export interface ShellPart {
  /** What runs in the end. */
  readonly words: readonly Token[];
  /** The wrappers it came in, outermost first, each with all its words. */
  readonly wrappers: readonly (readonly Token[])[];
  /** Why no rule can allow it, each as the rest of a sentence. */
  readonly blocks: readonly string[];
  /** It only joins other commands: it needs no rule and allows nothing, but can be denied like any other. */
  readonly isGlue: boolean;
  /** The folder it runs in as far as the text tells; undefined for the one the tool starts in. */
  readonly folder: string | undefined;
}

export interface ShellRedirect {
  readonly target: Token;
  readonly access: "read" | "write";
  readonly folder: string | undefined;
}

export type StructureDanger = "code-from-network" | "code-from-decoder" | "fork-bomb";

/** One word of a command after quotes are gone. */
export interface Token {
  /**
   * What the program gets. Where only the shell can know, it holds what can be said for finding dangers: `~` for the
   * home folder, wildcards as written, and a null character for the rest.
   */
  readonly text: string;
  /** False when the shell puts something in its place: variables, substitutions, wildcards, braces, `~`. */
  readonly known: boolean;
}

export const UNKNOWN = "\0";

export const UNKNOWN_TOKEN: Token = Object.freeze({ text: UNKNOWN, known: false });

/** `rm` for `/bin/rm`, `./rm` and `rm`. */
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The name under which tables know a program: dangers do not care where it lies or how it is cased. */
export function programName(token: Token | undefined): string {
  return baseName(token?.text ?? "").toLowerCase();
}

/** Longer commands are programs; a person should read them. */
const LONGEST = 16 * 1024;
const MOST_LINES = 500;

/**
 * The parser looks ahead from each opening bracket, so its time grows with openings times length: 16 KiB of `$[` took
 * 2.5 s on a busy machine. Within this budget the worst input we found stays below 20 ms of processor time.
 */
const MOST_WORK = 200_000;
const MOST_OPENINGS = 256;

/** Why a command cannot be inspected, as the rest of a sentence; undefined when it can. */
export function inspectionProblem(command: string): string | undefined {
  if (command.trim() === "") return "it is empty";
  if (command.length > LONGEST) return `it is longer than ${LONGEST} characters`;
  if (!command.isWellFormed()) return "it holds half of a surrogate pair";
  // What a reviewer cannot see, or sees in another order, could be anything; shells disagree about some of these too.
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
