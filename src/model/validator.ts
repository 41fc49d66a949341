import type { Decision, DecisionState, Diff } from "./decision.ts";
import type { Verdict } from "./verdict.ts";

/**
 * A gate before commit. Both review tiers use this one contract. Shape: callback; the engine waits for the answer. A
 * validator that throws, or does not answer in time, means no.
 */
export interface Validator {
  readonly name: string;
  review(diff: Diff, options: ReviewOptions): Promise<Verdict> | Verdict;
}

export interface ReviewOptions {
  readonly signal: AbortSignal;
}

/**
 * An orthogonal yes or no on a move that the state table allows. The decision it sees already carries the fresh verdict,
 * while its state is still the old one. Shape: callback. A guard that throws means no.
 */
export interface Guard {
  allows(
    decision: Decision,
    target: DecisionState,
    options: ReviewOptions,
  ): Promise<boolean> | boolean;
}
