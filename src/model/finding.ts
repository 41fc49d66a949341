/** What a gate policy says. `hard-deny` can never be overridden; the others need less and less. */
export interface Finding {
  readonly severity: FindingSeverity;
  readonly policy: string;
  /** Written for the model or person that reads it: what was refused, why, what to do instead. */
  readonly message: string;
}

/** Most severe first. */
export const FINDING_SEVERITIES = [
  "hard-deny",
  "soft-deny",
  "evidence-required",
  "warning",
] as const;
export type FindingSeverity = (typeof FINDING_SEVERITIES)[number];

/** Every gate answers one of three, always with what led to it. Deny beats ask, ask beats allow. */
export interface GateAnswer {
  readonly answer: "allow" | "ask" | "deny";
  readonly findings: readonly Finding[];
}
