import type { Bug } from "./bug.ts";

/** Mistakes about what people are shown in the console and the terminal. */
export const SCREEN_BUGS: readonly Bug[] = [];
