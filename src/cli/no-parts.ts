import { NO_RULES } from "../gate/policy.ts";
import type { Validator } from "../model/validator.ts";
import { allowAlways } from "../staging/guards/allow-always.ts";
import type { ServedParts } from "./serve.ts";

/** A server without tools: decisions, questions and tasks of others can be looked at, and nothing can be executed. */
export function noParts(): ServedParts {
  return {
    tools: [],
    validators: { tech: nobody, business: nobody },
    guard: allowAlways,
    policy: NO_RULES,
  };
}

/** Without a review of its own a server lets nothing pass. */
const nobody: Validator = {
  name: "nobody",
  async review() {
    return {
      approved: false,
      score: 0,
      severity: "block",
      reason: "This server has no reviews. Start it with --config.",
      validator: "nobody",
      policyVersion: "",
    };
  },
};
