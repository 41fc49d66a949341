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
