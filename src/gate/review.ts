// Step "review": the technical tier, then the business tier. Before it: propose stages the decision. After it: show.

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

/** The part of the context that a review needs. */
export interface ReviewContext {
  readonly store: { readonly decisions: DecisionStore };
  readonly validators: Readonly<Record<Tier, Validator>>;
  readonly guard: Guard;
  readonly reviewTimeoutMs: number;
  readonly timers: Timers;
}

export interface Reviewed {
  readonly verdict: Verdict;
  /** As it is after the review. */
  readonly decision: Decision;
}

/**
 * The review of one tier, for every decision. A no is stored. So is a yes, unless a person completes it: then the yes is
 * returned, the decision stays where it is, and the guard is asked together with the person's answer. A validator that fails
 * or is late means no. Throws illegal_transition, and dependency_denied when the guard does not agree; then nothing was
 * written and the review may be repeated.
 */
export async function reviewTier(
  context: ReviewContext,
  tier: Tier,
  decision: Decision,
  yes: "stored" | "left_to_a_person" = "stored",
): Promise<Reviewed> {
  const { id } = decision;
  const { from, yes: target, field } = TIERS[tier];
  // Checked first, because a validator may be slow, costly or have effects. The write checks again.
  if (decision.state !== from) {
    const hint = "Read the decision again: each tier reviews once, the technical one first.";
    throw new SallyportError("illegal_transition", { id, from: decision.state, to: target, hint });
  }
  // A copy where a guard is asked afterwards: what a validator does to the payload must not reach it.
  const diff = context.guard === allowAlways ? decision.diff : copyOf(decision.diff);
  const verdict = await verdictOf(context, context.validators[tier], diff);
  if (verdict.approved && yes === "left_to_a_person") return { verdict, decision };
  // A copy, because what a guard does to what it is shown must not reach the store.
  if (verdict.approved) {
    await consultGuard(context, { ...decision, [field]: { ...verdict } }, target);
  }
  const { decisions } = context.store;
  const moved =
    tier === "tech"
      ? await decisions.updateTechVerdict(id, verdict)
      : await decisions.updateBizVerdict(id, verdict);
  return { verdict, decision: moved };
}

function copyOf({ sourceTool, raw, metadata }: Diff): Diff {
  return { sourceTool, raw: new Uint8Array(raw), metadata: copyMetadata(metadata) };
}

/** Asks the guard before a move to `target` is written. Throws dependency_denied; then it may be asked again. */
export async function consultGuard(
  { guard, reviewTimeoutMs, timers }: Omit<ReviewContext, "store" | "validators">,
  decision: Decision,
  target: DecisionState,
): Promise<void> {
  if (guard === allowAlways) return;
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
}

/** Asks a validator and always returns a verdict: an exception, a time-out or an invalid answer is a no in its name. */
async function verdictOf(
  { reviewTimeoutMs, timers }: Pick<ReviewContext, "reviewTimeoutMs" | "timers">,
  validator: Validator,
  diff: Diff,
): Promise<Verdict> {
  try {
    const review = (stop: Stop) => validator.review(diff, stop);
    return readVerdict(await inTime(review, reviewTimeoutMs, timers), validator.name);
  } catch (error) {
    const reason = `validator failed: ${errorText(error)}`;
    return blockVerdict({ validator: validator.name, policyVersion: "", reason });
  }
}

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
 * Reviews for decisions that another platform executes: staged here, reviewed twice, closed by whoever executes them. It keeps
 * no state, so any number of these, in any number of processes, may work over one store. Outcomes are read by asking.
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
  const { store, guard, tech, business, clock = systemClock } = options;
  const { reviewTimeoutMs = 60_000, timers = systemTimers } = options;
  const validators = { tech, business };
  const context = { store: { decisions: store }, validators, guard, reviewTimeoutMs, timers };
  const validate = async (tier: Tier, id: DecisionId): Promise<Decision> =>
    (await reviewTier(context, tier, await store.get(id))).decision;
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
