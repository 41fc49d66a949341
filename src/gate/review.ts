// Step "review": the technical tier, then the business tier, each with its validator and, before the decision moves, the guard.
// Before it: propose stages the decision. After it: show.

import {
  copyMetadata,
  type Decision,
  type DecisionId,
  type DecisionState,
  type Diff,
  effectiveSeverity,
  type Guard,
  isFinal,
  type Metadata,
  newDraft,
  type ReviewedCall,
  type ReviewOptions,
  type ReviewRequest,
  type SessionId,
  TIERS,
  type Tier,
  type Validator,
  type Verdict,
  verdictProblem,
} from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import type { By, DecisionStore } from "../store/decisions.ts";
import { type Clock, systemClock, toIso } from "../util/clock.ts";
import { errorText, oneLine } from "../util/error-text.ts";
import { inTime, type Stop, systemTimers, type Timers } from "../util/timers.ts";
import { type HookContext, toldOfReview, vetoOfReview } from "./hooks.ts";
import { agentOf, decodeProposal, requestedBy } from "./show.ts";

/** The part of the context that a review needs. */
export interface ReviewContext extends Partial<HookContext> {
  readonly store: { readonly decisions: DecisionStore };
  readonly validators: Readonly<Record<Tier, Validator>>;
  readonly guard: Guard;
  readonly reviewTimeoutMs: number;
  readonly timers: Timers;
}

/**
 * The verdict of one tier on a decision, for every decision; nothing is written. Unless a person completes a yes, the guard has
 * agreed to it: with a person it is asked together with their answer. A validator that fails or is late means no. Throws
 * illegal_transition, and dependency_denied when the guard does not agree; then the review may be repeated.
 */
export async function reviewTier(
  context: Omit<ReviewContext, "store">,
  tier: Tier,
  decision: Decision,
  yes: "final" | "left_to_a_person" = "final",
): Promise<Verdict> {
  const { id } = decision;
  const { from, yes: target, field } = TIERS[tier];
  // Checked first, because a validator may be slow, costly or have effects. The write checks again.
  if (decision.state !== from) {
    const hint = "Read the decision again: each tier reviews once, the technical one first.";
    throw new SallyportError("illegal_transition", { id, from: decision.state, to: target, hint });
  }
  const isHooked = (context.hooks ?? []).length > 0;
  const veto = isHooked ? await vetoOfReview(context, tier, decision) : undefined;
  const verdict = veto ?? (await verdictOf(context, context.validators[tier], requestOf(decision)));
  if (isHooked) await toldOfReview(context, tier, decision, verdict);
  if (!verdict.approved || yes === "left_to_a_person") return verdict;
  await consultGuard(context, { ...decision, [field]: { ...verdict } }, target);
  return verdict;
}

/** Stores the verdict of a tier. Throws illegal_transition when the decision is elsewhere by then. */
export function storeVerdict(
  { decisions }: ReviewContext["store"],
  tier: Tier,
  id: DecisionId,
  verdict: Verdict,
): Promise<Decision> {
  return tier === "tech"
    ? decisions.updateTechVerdict(id, verdict)
    : decisions.updateBizVerdict(id, verdict);
}

/**
 * A copy of the payload, because what a validator does to it must reach neither the store nor the guard. Made, like the
 * decoded calls, when a validator reads it: many look at one of them only.
 */
function requestOf(decision: Decision): ReviewRequest {
  const { sessionId: session, origin, diff } = decision;
  let raw: Uint8Array | undefined;
  let metadata: Metadata | undefined;
  let calls: readonly ReviewedCall[] | undefined;
  return {
    sourceTool: diff.sourceTool,
    get raw() {
      raw ??= new Uint8Array(diff.raw);
      return raw;
    },
    get metadata() {
      metadata ??= copyMetadata(diff.metadata);
      return metadata;
    },
    session,
    agent: origin === "port" ? agentOf(requestedBy(decision)) : "",
    get calls() {
      calls ??= origin === "port" ? callsOf(decision) : [];
      return calls;
    },
  };
}

function callsOf(decision: Decision): readonly ReviewedCall[] {
  return decodeProposal(decision).calls.map(({ tool, input, callId }) => ({ tool, input, callId }));
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
    // A copy, because what a guard does to what it is shown must not reach the store.
    const diff = copyOf(decision.diff);
    const metadata = copyMetadata(decision.metadata);
    const ask = (stop: Stop) => guard.allows({ ...decision, diff, metadata }, target, stop);
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
  request: ReviewRequest,
): Promise<Verdict> {
  try {
    const review = (stop: Stop) => validator.review(request, stop);
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
 * Reviews for decisions that another platform executes: staged here, reviewed twice, closed by the platform that executes them. It keeps
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

/**
 * Reviews without execution, for the decisions of another platform. Throws invalid_input when a part is missing.
 *
 *     const staging = createStaging({ store: decisions, tech, business, guard: allowAlways });
 */
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
  const validate = async (tier: Tier, id: DecisionId): Promise<Decision> => {
    const verdict = await reviewTier(context, tier, await store.get(id));
    return storeVerdict(context.store, tier, id, verdict);
  };
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

// Asking a validator, and reading its answer.

/**
 * One review, with the answer looked at before anybody believes it. Throws what the validator threw, the signal's reason
 * when it did not answer in time, and a TypeError when what came back is not a verdict; callers turn each into a no.
 */
export async function askValidator(
  validator: Validator,
  diff: Diff,
  { signal }: ReviewOptions,
): Promise<Verdict> {
  const answer: unknown = await untilAborted(signal, () =>
    validator.review(reviewRequest(diff), { signal }),
  );
  return readVerdict(answer, validator.name);
}

/** A payload as validators get it; one from outside the gate holds no calls that could be decoded. */
export function reviewRequest(diff: Diff | ReviewRequest): ReviewRequest {
  return "calls" in diff ? diff : { ...diff, calls: [], session: "", agent: "" };
}

/** Copies a verdict out of an untyped answer. One without a validator name would look unreviewed, so it gets this one. */
export function readVerdict(answer: unknown, name: string): Verdict {
  // An error that is handed back instead of thrown is still an error, whatever else it says.
  if (answer instanceof Error) throw answer;
  need(isObject(answer), `Validator "${name}" did not answer with a verdict.`);
  const { approved, score, reason, severity, policyVersion, validator } =
    answer as unknown as Verdict;
  const verdict = {
    approved,
    score,
    reason,
    severity,
    policyVersion,
    validator: validator || name,
  };
  const problem = verdictProblem(verdict);
  need(problem === undefined, `Validator "${name}" gave an unusable verdict: ${problem}.`);
  return verdict;
}

/** Block forces a roll-back whatever else the verdict says, so one that approves and blocks at once is a no. */
export function isBlockVerdict(verdict: Verdict): boolean {
  return effectiveSeverity(verdict.severity) === "block";
}

/** The verdict that stands in for an answer that never came or made no sense. */
export function blockVerdict(by: {
  readonly validator: string;
  readonly policyVersion: string;
  readonly reason: string;
}): Verdict {
  return { approved: false, score: 0, severity: "block", ...by };
}

/**
 * Waits for work no longer than the signal allows. Work that ignores the signal is left behind and its late answer is
 * thrown away, also when it arrives in the same turn: after the deadline an approval is worth nothing.
 */
export async function untilAborted<T>(
  signal: AbortSignal,
  work: () => T | PromiseLike<T>,
): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const answer = await Promise.race([work(), aborted.promise]);
    signal.throwIfAborted();
    return answer;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/**
 * Construction checks. A missing or impossible part is a mistake in the wiring, so it is reported when
 * the part is made and not at the first review, where it could only show up as a refusal. Throws TypeError.
 */
export function need(holds: boolean, sentence: string): asserts holds {
  if (!holds) throw new TypeError(sentence);
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** A name that can stand in an audit entry. */
export function isFilledText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

/** True for anything with a usable name and a method of that name: a validator, an evaluator, a tool, a listener. */
export function isNamedPart(part: unknown, method: string): boolean {
  return isObject(part) && isFilledText(part["name"]) && typeof part[method] === "function";
}

// Guards to choose from.

/**
 * "No dependency rules", written out: the engine has no default guard, so this has to be chosen.
 *
 *     const gate = createGate({ guard: allowAlways });
 */
export const allowAlways: Guard = Object.freeze({ allows: () => true });

/**
 * Denies decisions of the tenants that are marked true. Only a positively identified tenant is stopped: no metadata, no
 * `tenant` key or one that is not text is let through, so this guard is a block list and not an isolation boundary.
 *
 * The list is read at each question, so marking a tenant later takes effect at once. Keys are looked up as own
 * properties: a tenant that calls itself "constructor" is not found on the prototype of every list.
 *
 *     const gate = createGate({ guard: tenantDenyGuard({ acme: true }) });
 */
export function tenantDenyGuard(blocked: Readonly<Record<string, boolean>> | undefined): Guard {
  const list: unknown = blocked ?? {};
  // A Map, a Set or an array has no own keys that match and would silently deny no tenant.
  need(isObject(list) && isPlain(list), "tenantDenyGuard needs an object of tenants and booleans.");
  for (const [tenant, isBlocked] of Object.entries(list)) {
    need(typeof isBlocked === "boolean", `The block list needs true or false for "${tenant}".`);
  }
  return {
    allows({ metadata }) {
      if (!isObject(metadata) || !Object.hasOwn(metadata, "tenant")) return true;
      const tenant = metadata["tenant"];
      return typeof tenant !== "string" || !Object.hasOwn(list, tenant) || list[tenant] !== true;
    },
  };
}

function isPlain(list: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(list);
  return prototype === Object.prototype || prototype === null;
}

export interface WaitsForUpstreamOptions {
  /** Looks a decision up in the tenant that this guard serves; undefined when there is none. */
  readonly read: (id: DecisionId) => Promise<{ readonly state: DecisionState } | undefined>;
  /** Where the ids stand in the metadata: one, or a list of them. `upstream` when left out. */
  readonly key?: string;
}

/** Each upstream costs a read at every question. */
const MOST_UPSTREAMS = 100;

/**
 * Lets a decision move on only after the decisions it names are executed; one that names none waits for nothing.
 * Executed is final, so what was read stays true until the move is written.
 *
 * "Not yet" is a plain denial and worth asking again. What can never become a yes is thrown with the reason, which the
 * engine treats as a denial too: ids of the wrong type, unknown ids, the decision itself, an upstream that was rejected
 * or has failed.
 *
 *     const gate = createGate({ guard: waitsForUpstreamGuard({ read }) });
 */
export function waitsForUpstreamGuard(options: WaitsForUpstreamOptions): Guard {
  const { read, key = "upstream" } = options;
  need(typeof read === "function", "waitsForUpstreamGuard needs a read function.");
  need(isFilledText(key), "waitsForUpstreamGuard needs the name of a metadata key.");
  return {
    async allows({ id, metadata }, _target, { signal }) {
      let allExecuted = true;
      for (const upstream of upstreamsOf(metadata, key)) {
        if (upstream === id) throw new Error(`Decision ${id} names itself as its ${key}.`);
        const found = await untilAborted(signal, () => read(upstream));
        // The ids were written by an agent, so they are shown as one line of limited length.
        const name = `${key} decision ${oneLine(upstream, 100)}`;
        if (found === undefined) throw new Error(`There is no ${name}.`);
        if (found.state === "executed") continue;
        if (isFinal(found.state)) throw new Error(`The ${name} ended as ${found.state}.`);
        allExecuted = false;
      }
      return allExecuted;
    },
  };
}

function upstreamsOf(metadata: unknown, key: string): ReadonlySet<DecisionId> {
  if (!isObject(metadata) || !Object.hasOwn(metadata, key)) return new Set();
  const value = metadata[key];
  // Array.from turns the holes of a sparse list into undefined, which `every` would have skipped.
  const ids: readonly unknown[] = Array.isArray(value) ? Array.from(value) : [value];
  if (ids.length > MOST_UPSTREAMS) {
    throw new Error(
      `A decision can wait for ${MOST_UPSTREAMS} others, ${key} names ${ids.length}.`,
    );
  }
  if (!ids.every(isFilledText)) {
    throw new Error(`The metadata key ${key} must hold a decision id or a list of decision ids.`);
  }
  return new Set(ids);
}
