import type { Bug } from "./bug.ts";

/** Mistakes about limits: streams, connections, queries, pages. */
export const LIMITS_BUGS: readonly Bug[] = [];
