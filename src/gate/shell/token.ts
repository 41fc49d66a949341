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
