import type { Decision, DecisionState, Diff } from "./decision.ts";
import { isName } from "./names.ts";

/**
 * What a validator says of a decision. Only `approved` decides the route; severity tells how bad a doubt is: `warn` does
 * not stop a commit but counts as a sample for the breaker, `block` counts as a failure.
 */
export interface Verdict {
  readonly approved: boolean;
  /** 0 to 1 by convention; the validator decides what it means. */
  readonly score: number;
  readonly reason: string;
  readonly severity: Severity;
  /** Who said so and under which policy: both exist for the audit trail. */
  readonly validator: string;
  readonly policyVersion: string;
}

/** Empty is read as `warn`. */
export type Severity = "" | "warn" | "block";

/** The zero value: this tier has not reviewed yet. */
export const NO_VERDICT: Verdict = Object.freeze({
  approved: false,
  score: 0,
  reason: "",
  severity: "",
  validator: "",
  policyVersion: "",
});

export function isReviewed(verdict: Verdict): boolean {
  return verdict.validator !== "";
}

export function effectiveSeverity(severity: Severity): "warn" | "block" {
  return severity === "block" ? "block" : "warn";
}

/** Longer reasons are nobody's reading and fill the trail. */
export const MAX_REASON = 64 * 1024;

/** What is wrong with a verdict, as a sentence without its full stop; undefined when nothing is. */
export function verdictProblem(verdict: Verdict): string | undefined {
  if (typeof verdict !== "object" || verdict === null) return "A verdict is an object";
  if (typeof verdict.approved !== "boolean") return "approved must be true or false";
  if (typeof verdict.score !== "number" || !(Math.abs(verdict.score) <= 1e9)) {
    return "score must be a finite number between -1e9 and 1e9";
  }
  if (typeof verdict.reason !== "string" || verdict.reason.length > MAX_REASON) {
    return `reason must be text of at most ${MAX_REASON} characters`;
  }
  if (!["", "warn", "block"].includes(verdict.severity)) {
    return 'severity must be "warn", "block" or empty';
  }
  if (typeof verdict.policyVersion !== "string") return "policyVersion must be text";
  if (!isName(verdict.validator)) return "validator must name who reviewed";
  return undefined;
}

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
