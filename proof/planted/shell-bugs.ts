import type { Bug } from "./bug.ts";

/** Mistakes about the shell gate. */
export const SHELL_BUGS: readonly Bug[] = [];
