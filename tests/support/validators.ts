import type { Validator } from "../../src/model/verdict.ts";

/** A validator that has nothing against anything. */
export function sampleVerdictValidator(name: string): Validator {
  return {
    name,
    review: () => ({
      approved: true,
      score: 1,
      severity: "",
      reason: "fits",
      validator: name,
      policyVersion: "1",
    }),
  };
}
