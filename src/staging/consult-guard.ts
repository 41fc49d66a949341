import type { Decision, DecisionState } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import type { Guard } from "../model/validator.ts";
import { inTime, type Stop, type Timers } from "../util/timers.ts";

/** Asks before a move to `target` is written. Throws dependency_denied; then nothing was written and it may be asked again. */
export type ConsultGuard = (decision: Decision, target: DecisionState) => Promise<void>;

export function consultGuard(
  guard: Guard,
  { reviewTimeoutMs, timers }: { readonly reviewTimeoutMs: number; readonly timers: Timers },
): ConsultGuard {
  return async (decision, target) => {
    let allowed: unknown;
    let cause: unknown;
    try {
      const ask = (stop: Stop) => guard.allows(decision, target, stop);
      allowed = await inTime(ask, reviewTimeoutMs, timers);
    } catch (error) {
      cause = error;
    }
    // Only a plain true is a yes: a guard that answers anything else is as broken as one that throws.
    if (allowed === true) return;
    const hint =
      cause === undefined
        ? "Ask again when what it waits for has happened."
        : "The guard failed; see the cause, then ask again.";
    throw new SallyportError("dependency_denied", { id: decision.id, to: target, hint }, cause);
  };
}
