import type { Diff } from "../model/decision.ts";
import type { Validator } from "../model/validator.ts";
import { type Verdict, verdictProblem } from "../model/verdict.ts";
import { type Timers, withDeadline } from "../util/timers.ts";
import { errorText } from "./error-text.ts";

/**
 * Asks a validator and always gets a verdict: whatever goes wrong (it throws, does not answer in time or answers with
 * something that is no verdict) becomes a refusal in its name that says why.
 */
export async function verdictOf(
  validator: Validator,
  diff: Diff,
  { reviewTimeoutMs, timers }: { reviewTimeoutMs: number; timers: Timers },
): Promise<Verdict> {
  try {
    const review = (signal: AbortSignal) => validator.review(diff, { signal });
    const said = await withDeadline(review, reviewTimeoutMs, timers);
    const verdict = { ...said, validator: said.validator || validator.name };
    const problem = verdictProblem(verdict);
    return problem === undefined ? verdict : refusal(validator, `unusable verdict: ${problem}`);
  } catch (error) {
    return refusal(validator, `validator failed: ${errorText(error)}`);
  }
}

function refusal(validator: Validator, reason: string): Verdict {
  return {
    approved: false,
    score: 0,
    severity: "block",
    reason,
    validator: validator.name,
    policyVersion: "",
  };
}
