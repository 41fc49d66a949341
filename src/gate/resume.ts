// What happens once, in whichever process: continuing the run of an agent that stopped at calls which waited for people, and
// handing on the outcome of a call to a client that has lost track of it. The state of a run belongs to its host; the gate knows
// the answers.

import type { DecisionId, SessionId } from "../model/decision.ts";
import type { CallAnswer } from "../model/operation.ts";
import { callKeyId } from "../store/decisions.ts";
import type { TenantStore } from "../store/store.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { fromIso } from "../util/clock.ts";
import { sha256Hex } from "../util/hash.ts";
import { renewEvery } from "../util/timers.ts";
import { isSettled, latestOf, operationOf, resultOfDecision, resultOfId } from "./answers.ts";
import type { GateContext } from "./context.ts";

/** Where a run stopped. */
export interface Pause {
  /** Its session. */
  readonly run: string;
  /** The keys of the calls at which it stopped. */
  readonly keys: readonly string[];
}

/** How long a dead process keeps others from continuing its run. */
const LEASE_MS = 30_000;
/** By then the host has saved the run elsewhere, or it does not exist any more. */
const KEEP_MS = 30 * 24 * 3_600_000;
const ACTOR = "resume";

export async function resumeRun(
  { store, timers }: GateContext,
  { run, keys }: Pause,
  proceed: (answers: readonly CallAnswer[]) => Promise<void>,
): Promise<boolean> {
  if (keys.length === 0) return false;
  const answers = await Promise.all(keys.map((key) => answerTo(store, run, key)));
  if (!answers.every((answer) => answer !== undefined)) return false;
  const id = sha256Hex(canonicalJson([ACTOR, run, ...keys.toSorted()]));
  const claim = { id, route: ACTOR, contentHash: id, actor: ACTOR };
  const begun = await store.httpKeys.begin(claim, { leaseMs: LEASE_MS, keepMs: KEEP_MS });
  if (begun.found !== "nothing") return false;
  const { fence } = begun;
  const stopRenewing = renewEvery(LEASE_MS / 3, timers, () =>
    store.httpKeys.renew(id, fence, LEASE_MS, ACTOR),
  );
  try {
    await proceed(answers).finally(stopRenewing);
  } catch (error) {
    await store.httpKeys.forget(id, fence, ACTOR);
    throw error;
  }
  // What changed since a yes was asked again: the run stopped at the same calls, and is continued after the next answer.
  const now = await Promise.all(keys.map((key) => answerTo(store, run, key)));
  if (!now.every((answer) => answer !== undefined)) {
    await store.httpKeys.forget(id, fence, ACTOR);
    return false;
  }
  await store.httpKeys.answer(id, fence, { status: 200, body: "" }, ACTOR);
  return true;
}

/** Undefined while a person has to decide, or when it was never asked for. An approved call counts before it was executed. */
async function answerTo(
  store: TenantStore,
  run: string,
  key: string,
): Promise<CallAnswer | undefined> {
  const answer = await resultOfId(run, key, store);
  if (answer?.answer !== "pending") return answer;
  const question = await store.interactions.peek(answer.interactionId);
  return question === undefined || question.status === "open" ? undefined : answer;
}

const DELIVERY = "delivery";
/** An outcome that nobody asked for this long is history: the same call is a new one. Shorter than the mark is kept. */
const DELIVERABLE_MS = 7 * 24 * 3_600_000;

/** `deliver` of a session. A call that needed no decision is found by nobody else, so there is nothing to note. */
export async function deliverCall(
  context: GateContext,
  sessionId: SessionId,
  key: string,
  answer: CallAnswer,
): Promise<boolean> {
  if ("operationId" in answer && answer.operationId === callKeyId(sessionId, key)) return false;
  const { store } = context;
  const asked = await store.interactions.ofCall(sessionId, key);
  // An answer to an identical call that was under way is one of a decision that does not know this key.
  const executed =
    asked === undefined && "operationId" in answer && answer.operationId !== undefined
      ? await operationOf(answer.operationId, store)
      : undefined;
  const decided = asked?.decisionId ?? executed?.decisionId ?? "";
  return decided !== "" && deliverOnce(context, decided);
}

/** Notes that the outcome of a decision was handed on. True for the first of all processes. */
async function deliverOnce(
  { store }: Pick<GateContext, "store">,
  decided: DecisionId,
): Promise<boolean> {
  const id = sha256Hex(canonicalJson([DELIVERY, await latestOf(decided, store)]));
  const claim = { id, route: DELIVERY, contentHash: id, actor: DELIVERY };
  // Nothing is left to be done about it later, so nobody takes it over.
  const begun = await store.httpKeys.begin(claim, { leaseMs: KEEP_MS, keepMs: KEEP_MS });
  return begun.found === "nothing";
}

/**
 * The outcome of an identical call that ended without anyone having asked what became of it, once; and, as often as it is asked
 * for, that it is not known. Undefined when there is none: then the call is a new one.
 */
export async function undelivered(
  context: GateContext,
  decided: DecisionId | "",
): Promise<CallAnswer | undefined> {
  if (decided === "") return undefined;
  const { store, clock } = context;
  const answer = await resultOfDecision(decided, 0, store);
  if (!isSettled(answer)) return answer;
  const { updatedAt } = await store.decisions.get(await latestOf(decided, store));
  if (clock.now() - fromIso(updatedAt) > DELIVERABLE_MS) return undefined;
  return (await deliverOnce(context, decided)) ? answer : undefined;
}
