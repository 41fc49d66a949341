import type { Instant } from "./instant.ts";

/** How somebody has decided so far. Counts are since they were seen first; misses since their right was last restored. */
export interface Reviewer {
  readonly id: string;
  /** Suspended: their yes does not count until an operator restores it. */
  readonly status: "trusted" | "suspended";
  readonly approved: number;
  readonly rejected: number;
  /** Decoys they said no to, and decoys they let through. */
  readonly caught: number;
  readonly missed: number;
  /** Yeses since `hourAt`, for at most an hour. */
  readonly hourCount: number;
  readonly hourAt: Instant;
}
