import type { Token } from "./token.ts";

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
