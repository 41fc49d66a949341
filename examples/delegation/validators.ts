import type { Validator } from "sallyport";

/** This story is about scopes; the two machine reviews approve everything. */
export function fits(name: string): Validator {
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
