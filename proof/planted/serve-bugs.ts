import type { Bug } from "./bug.ts";

/** Mistakes about the shipped server: local access, anchors, epoch file. */
export const SERVE_BUGS: readonly Bug[] = [];
