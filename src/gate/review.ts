import {
  copyMetadata,
  type Decision,
  type DecisionId,
  type DecisionState,
  type Diff,
  newDraft,
  type SessionId,
  TIERS,
  type Tier,
} from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import type { Guard, Validator, Verdict } from "../model/verdict.ts";
import type { By, DecisionStore } from "../store/decisions.ts";
import { type Clock, systemClock, toIso } from "../util/clock.ts";
import { errorText } from "../util/error-text.ts";
import { inTime, type Stop, systemTimers, type Timers } from "../util/timers.ts";
import { allowAlways } from "./guards.ts";
import { blockVerdict, readVerdict } from "./validators/ask-validator.ts";

export interface StagingOptions {
  readonly store: DecisionStore;
  readonly tech: Validator;
  readonly business: Validator;
  /** "No dependency rules" is written out: pass `allowAlways`. */
  readonly guard: Guard;
  /** A validator or guard that has not answered by then means no. */
  readonly reviewTimeoutMs?: number;
  readonly clock?: Clock;
  readonly timers?: Timers;
}

/**
 * The life of a decision: staged by an agent, reviewed twice, closed by whoever executes it. It keeps no state of its own,
 * so any number of these, in any number of processes, may work over one store. Nothing is pushed anywhere: outcomes are
 * seen by asking.
 */
export interface Staging
  extends Pick<
    DecisionStore,
    "markExecuted" | "markFailed" | "get" | "list" | "listBySession" | "listStuck"
  > {
  stage(sessionId: SessionId, diff: Diff, by?: By): Promise<Decision>;
  /**
   * Runs the technical review. A broken validator rejects the decision; a guard that does not agree throws
   * dependency_denied and leaves everything as it was, so the call may be repeated. Throws not_found, illegal_transition.
   */
  validateTech(id: DecisionId): Promise<Decision>;
  /** The same for the business review. */
  validateBiz(id: DecisionId): Promise<Decision>;
}

export function createStaging(options: StagingOptions): Staging {
  for (const part of ["store", "tech", "business", "guard"] as const) {
    if (options[part]) continue;
    throw new TypeError(
      `sallyport: createStaging needs a ${part}; nothing is assumed in its place`,
    );
  }
  const { store, guard, clock = systemClock } = options;
  const { reviewTimeoutMs = 60_000, timers = systemTimers } = options;
  const validators = { tech: options.tech, business: options.business };
  // Where there is no dependency rule nobody has to be asked, and the decision that was read is the validator's alone.
  const consult =
    guard === allowAlways ? undefined : consultGuard(guard, { reviewTimeoutMs, timers });

  async function validate(tier: Tier, id: DecisionId): Promise<Decision> {
    const decision = await store.get(id);
    const { from, yes, field } = TIERS[tier];
    // Looked at first, because a review may be slow, costly or have effects. The write checks again.
    if (decision.state !== from) {
      const hint = "Read the decision again: each tier reviews once, the technical one first.";
      throw new SallyportError("illegal_transition", { id, from: decision.state, to: yes, hint });
    }
    // The validator gets a payload of its own to look at: what it does to it reaches nobody else.
    const diff = consult === undefined ? decision.diff : copyOf(decision.diff);
    const verdict = await verdictOf(validators[tier], diff, { reviewTimeoutMs, timers });
    // A copy, because what a guard does to what it is shown must not reach the store.
    if (verdict.approved) await consult?.({ ...decision, [field]: { ...verdict } }, yes);
    // Awaited here: a promise that is handed on as it is makes its caller wait two turns longer.
    return tier === "tech"
      ? await store.updateTechVerdict(id, verdict)
      : await store.updateBizVerdict(id, verdict);
  }

  return {
    stage: async (sessionId, diff, by) =>
      await store.stage(newDraft(sessionId, diff, toIso(clock.now())), by),
    validateTech: (id) => validate("tech", id),
    validateBiz: (id) => validate("business", id),
    markExecuted: (id, proof, by) => store.markExecuted(id, proof, by),
    markFailed: (id, reason, by) => store.markFailed(id, reason, by),
    get: (id) => store.get(id),
    list: (query) => store.list(query),
    listBySession: (sessionId) => store.listBySession(sessionId),
    listStuck: (...asked) => store.listStuck(...asked),
  };
}

function copyOf({ sourceTool, raw, metadata }: Diff): Diff {
  return { sourceTool, raw: new Uint8Array(raw), metadata: copyMetadata(metadata) };
}

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
