import type { Capsule } from "./capsule.ts";

/** What a worker gets: the capsule, its own session, and nothing of the conversation it comes from. */
export interface Job<Session> {
  readonly capsule: Capsule;
  readonly session: Session;
  /** Shows that it works for this delegation, also in another process. */
  readonly token: string;
  /** Aborted when the delegation is over. */
  readonly signal: AbortSignal;
}

/**
 * Does the work of one delegation. Gives what it has to report, or undefined when it has reported by itself. Shape: callback;
 * what it throws is the reason of the failure.
 */
export type Worker<Session> = (job: Job<Session>) => Promise<string | undefined>;
