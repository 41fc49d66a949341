import type { Bug } from "./bug.ts";

/** Mistakes about stores under faults: servers, clocks, neighbours. */
export const STORE_FAULTS_BUGS: readonly Bug[] = [];
