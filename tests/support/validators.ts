import type { AtPoint, GateOptions } from "../../src/gate/options.ts";
import type { Validator } from "../../src/model/decision.ts";

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

/** A technical review that answers once its proposal is stored: then every step of the proposal is written by itself. */
export function slowReview(at: AtPoint = () => {}): Pick<GateOptions, "at" | "validators"> {
  let stored = Promise.withResolvers<void>();
  const schema = sampleVerdictValidator("schema");
  return {
    at(point) {
      if (point === "S1.before") stored = Promise.withResolvers();
      if (point === "S1.after") stored.resolve();
      at(point);
    },
    validators: {
      tech: {
        ...schema,
        async review(request, options) {
          await stored.promise;
          return schema.review(request, options);
        },
      },
      business: sampleVerdictValidator("limits"),
    },
  };
}
