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
  readonly words: readonly Token[];
  /** Its wrappers, outermost first, each with all its words. */
  readonly wrappers: readonly (readonly Token[])[];
  /** Why no rule can allow it, each as the rest of a sentence. */
  readonly blocks: readonly string[];
  /** It only joins other commands: it needs no rule and allows nothing, but can be denied like any other. */
  readonly isGlue: boolean;
  /** The folder it runs in, as far as the text shows; undefined for the tool's starting folder. */
  readonly folder: string | undefined;
}

export interface ShellRedirect {
  readonly target: Token;
  readonly access: "read" | "write";
  readonly folder: string | undefined;
}

export type StructureDanger = "code-from-network" | "code-from-decoder" | "fork-bomb";

/** One word of a command after quote removal. */
export interface Token {
  /**
   * The value that the program gets. Where only the shell knows it, the best text for finding dangers: `~` for the home
   * folder, wildcards as written, and a null character for the rest.
   */
  readonly text: string;
  /** False when the shell replaces it: variables, substitutions, wildcards, braces, `~`. */
  readonly known: boolean;
}

export const UNKNOWN = "\0";

export const UNKNOWN_TOKEN: Token = Object.freeze({ text: UNKNOWN, known: false });

/** `rm` for `/bin/rm`, `./rm` and `rm`. */
export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The name of a program in the tables: dangers ignore its folder and case. */
export function programName(token: Token | undefined): string {
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
