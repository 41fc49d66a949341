import type { CallAnswer } from "../model/call.ts";
import type { Decision, DecisionId } from "../model/decision.ts";
import { isSallyportError } from "../model/errors.ts";
import type { InteractionId } from "../model/interaction.ts";
import type { Operation } from "../model/operation.ts";
import type { TenantStore } from "../store/store.ts";
import type { GateContext } from "./context.ts";
import type { Executed } from "./order.ts";
import { lostId } from "./settle.ts";

/** The result of an order as the answer that callers get. The text is written for the model that reads it. */
export function answerOf(executed: Executed): CallAnswer {
  switch (executed.status) {
    case "done": {
      const { operation, result } = executed;
      return {
        answer: "done",
        text: operation.output,
        operationId: operation.id,
        truncated: operation.truncated,
        storedPath: operation.storedPath,
        ...(result.data === undefined ? {} : { data: result.data }),
        ...(operation.undo === undefined ? {} : { undo: operation.undo }),
      };
    }
    case "failed":
      return {
        answer: "failed",
        text: executed.operation.error || executed.result.text,
        operationId: executed.operation.id,
        ...(executed.result.data === undefined ? {} : { data: executed.result.data }),
      };
    case "unknown":
      return unknown(executed.operation);
    case "overtaken":
      return recorded(executed.operation);
    case "refused":
      return executed.operation === undefined
        ? { answer: "failed", text: REFUSALS[executed.reason] }
        : recorded(executed.operation);
  }
}

const REFUSALS = {
  stopped:
    "Not executed, and it will not run by itself later: everything was stopped by an operator. Ask for it again once work was resumed.",
  not_approved: "Not executed: the decision behind it is not approved any more.",
  expired_or_changed:
    "Not executed: the approval has expired, or is for something else than what would run. Propose it again.",
  rule_ended:
    "Not executed: the standing rule that allowed it has ended. Propose it again, so that a person is asked.",
  claim_lost:
    "Not executed: the claim on the task is over, somebody else may hold it. Stop working on this task.",
  overtaken:
    "Not executed: somebody else is at the calls around this one, to take them back or to go on with them. Look again later.",
  delegation_ended: "Not executed: the delegation behind this has ended. Stop, and report back.",
  restored:
    "Not executed: the store was restored from a backup since this was approved, and it may have happened already. Look first, then propose it again.",
  used_up: "Not executed: this approval was used before.",
  definition_changed:
    "Not executed: the tool was changed since it was allowed. Propose the call again, so that it is looked at anew.",
} as const;

/** For a call that is no longer in effect, whatever it answered when it was made. */
const UNDONE =
  "It was carried out and undone afterwards: nothing of it is in effect. To do it again, ask for it as a new call with a new key.";

/** Another process executed it or is doing so: what it recorded is the answer. */
export function recorded(operation: Operation): CallAnswer {
  const { id: operationId, output: text, truncated, storedPath, undo } = operation;
  switch (operation.status) {
    case "rolled_back":
      return { answer: "failed", text: UNDONE, operationId };
    case "success":
      return {
        answer: "done",
        text,
        operationId,
        truncated,
        storedPath,
        ...(undo === undefined ? {} : { undo }),
      };
    case "failed":
      return { answer: "failed", text: operation.error, operationId };
    case "started":
    case "unknown":
      return unknown(operation);
  }
}

function unknown({ id, error, status, attempt }: Operation): CallAnswer {
  // Recorded as unknown, it was asked about in the same transaction.
  const asked = status === "unknown" ? { interactionId: lostId(id, attempt) } : {};
  const why = error === "" ? "" : ` (${error})`;
  const text = `It is not known whether this happened${why}. Do not repeat it: a person has to look first.`;
  return { answer: "unknown", text, operationId: id, ...asked };
}

/** The result of one call of a decision, from what is stored: the same in every process, however often it is asked for. */
export async function resultOfDecision(
  id: DecisionId,
  step: number,
  store: TenantStore,
): Promise<CallAnswer> {
  const asked = await store.interactions.peek(id);
  // Edited, or back in review: the call continues under another id.
  if (asked !== undefined && asked.supersededBy !== "") {
    return resultOfDecision(asked.supersededBy, step, store);
  }
  const decision = await store.decisions.get(id);
  const operation = await operationOf(`${id}.${step}`, store);
  switch (decision.state) {
    case "pending_tech":
    case "pending_ml":
      return pending(id);
    case "rejected_tech":
      return rejection(decision.techVerdict.reason);
    case "rejected_ml":
      return rejection(decision.bizVerdict.reason, decision.bizVerdict.validator);
    case "approved":
      if (operation !== undefined) return recorded(operation);
      return (await store.killSwitch.isStopped()) ? held(id) : approved(id);
    case "executed":
      return operation === undefined ? closedByHand(decision) : recorded(operation);
    case "failed":
      return { answer: "failed", text: failureOf(decision, operation) };
  }
}

/** A slow process (its connection was cut, it was suspended) may find that another one has executed this step meanwhile. */
export async function isElsewhere(
  { store }: GateContext,
  id: DecisionId,
  step: number,
): Promise<boolean> {
  if ((await store.decisions.get(id)).state !== "approved") return true;
  return (await operationOf(`${id}.${step}`, store)) !== undefined;
}

/** What is recorded of its calls from this step on. */
export function recordedFrom(
  { store }: Pick<GateContext, "store">,
  id: DecisionId,
  first: number,
  steps: number,
): Promise<readonly CallAnswer[]> {
  const left = Array.from({ length: steps - first }, (_, n) => first + n);
  return Promise.all(left.map((step) => resultOfDecision(id, step, store)));
}

export async function operationOf(id: string, store: TenantStore): Promise<Operation | undefined> {
  try {
    return await store.operations.get(id);
  } catch (error) {
    if (isSallyportError(error, "not_found")) return undefined;
    throw error;
  }
}

export function pending(id: InteractionId): CallAnswer {
  const text = `Not executed: it waits for approval as decision ${id}. Go on with something else, or ask later.`;
  return { answer: "pending", text, decisionId: id, interactionId: id };
}

/** An approval that waits while everything is stopped. */
export function held(id: DecisionId): CallAnswer {
  const text = `Approved. Everything is stopped; it runs when work resumes, as decision ${id}. Do not repeat it; ask later.`;
  return { answer: "pending", text, decisionId: id, interactionId: id };
}

function approved(id: DecisionId): CallAnswer {
  const text = `Approved as decision ${id} and about to be carried out. Do not repeat it; ask later.`;
  return { answer: "pending", text, decisionId: id, interactionId: id };
}

export function rejection(reason: string, by = ""): CallAnswer {
  const finding = { severity: "soft-deny", policy: "review", message: reason } as const;
  const who = by === "" ? "the review" : by;
  const text = `Not executed: ${who} said no. ${reason} Change the call or take another way.`;
  return { answer: "denied", text, findings: [finding] };
}

function closedByHand({ executionProof }: Decision): CallAnswer {
  const text = `It was executed elsewhere: ${JSON.stringify(executionProof) ?? "no proof was given"}.`;
  return { answer: "done", text, operationId: "", truncated: false, storedPath: "" };
}

/** A bundle fails as a whole: its executed calls were undone, whatever this one call had answered. */
function failureOf({ executionError }: Decision, operation: Operation | undefined): string {
  if (operation?.status === "failed" && operation.error !== "") return operation.error;
  const why = executionError || "It failed.";
  return operation?.status === "rolled_back" ? `${UNDONE} Why: ${why}` : why;
}

export interface WaitOptions {
  /** How long to wait for a person; afterwards the question is as open as before. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Notifications may be late or missing, so it polls as well. */
const LOOK_EVERY_MS = 1_000;

/** A call that is running, or whose outcome was lost and waits for a person, is open as well. */
function isSettled(answer: CallAnswer | undefined): boolean {
  return answer?.answer !== "pending" && answer?.answer !== "unknown";
}

/** Reads, and reads again after every commit, until the answer is final or the time is over. */
export async function waitFor(
  { timers, onCommit }: GateContext,
  look: () => Promise<CallAnswer | undefined>,
  { timeoutMs, signal }: WaitOptions,
): Promise<CallAnswer | undefined> {
  let over = false;
  let wake = (): void => {};
  const ends = () => {
    over = true;
    wake();
  };
  const cancel = timers.after(timeoutMs, ends);
  const forget = onCommit(() => wake());
  signal?.addEventListener("abort", ends, { once: true });
  try {
    for (;;) {
      // Armed before looking, so that what happens in between is not missed.
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const answer = await look();
      if (isSettled(answer) || over || signal?.aborted === true) return answer;
      const stop = timers.after(LOOK_EVERY_MS, () => wake());
      await woken;
      stop();
    }
  } finally {
    cancel();
    forget();
    signal?.removeEventListener("abort", ends);
  }
}
