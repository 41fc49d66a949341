import type { Validator } from "sallyport";

/** This story is about who may ask for what; the two machine reviews have nothing against anything. */
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
