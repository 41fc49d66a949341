import type { Bug } from "./bug.ts";

/** Mistakes about records: hashes, lists, decoys, stopped approvals. */
export const RECORDS_BUGS: readonly Bug[] = [];
