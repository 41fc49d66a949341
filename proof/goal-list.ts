import type { Goal } from "./goals.ts";

/** What the tests record, by goal; the scale of the full proof is the floor of the threat model. */
export const GOALS: readonly Goal[] = [];
