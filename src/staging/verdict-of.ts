import type { Diff } from "../model/decision.ts";
import type { Validator } from "../model/validator.ts";
import type { Verdict } from "../model/verdict.ts";
import { errorText } from "../util/error-text.ts";
import { inTime, type Stop, type Timers } from "../util/timers.ts";
import { blockVerdict, readVerdict } from "./validators/ask-validator.ts";

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
    const review = (stop: Stop) => validator.review(diff, stop);
    return readVerdict(await inTime(review, reviewTimeoutMs, timers), validator.name);
  } catch (error) {
    const reason = `validator failed: ${errorText(error)}`;
    return blockVerdict({ validator: validator.name, policyVersion: "", reason });
  }
}
