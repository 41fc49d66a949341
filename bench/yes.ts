import type { Validator } from "../src/model/decision.ts";

/** A validator that costs nothing and agrees: what is measured is everything around it. */
export function yes(name: string): Validator {
  const verdict = {
    approved: true,
    score: 1,
    severity: "warn",
    reason: "fits the rules",
    validator: name,
    policyVersion: "2026-11",
  } as const;
  return { name, review: () => verdict };
}
