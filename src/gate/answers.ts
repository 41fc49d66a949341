// Answers to agents: what became of a call, as its records say, by its key, its decision, its interaction or its operation.

import { createRedactor, type Redactor } from "../audit/redact.ts";
import type { Decision, DecisionId } from "../model/decision.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import {
  type Interaction,
  type InteractionId,
  lostId,
  type QuestionAnswer,
} from "../model/interaction.ts";
import type { CallAnswer, CallRequest, Operation } from "../model/operation.ts";
import { callKeyId } from "../store/decisions.ts";
import type { Shown } from "../store/interactions.ts";
import type { TenantStore } from "../store/store.ts";
import { definitionDifference } from "../tools/registry.ts";
import { secretFieldsOf } from "../tools/secret-fields.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { fromIso } from "../util/clock.ts";
import { oneLine } from "../util/error-text.ts";
import { isJsonObject, type JsonObject } from "../util/json.ts";
import type { GateContext } from "./context.ts";
import { ASK_USER, answerOfQuestion, questionHash, questionId, questionIn } from "./inbox.ts";
import { readRequest } from "./judge.ts";
import type { Executed } from "./order.ts";
import { callHash, decodeProposal, requestedBy } from "./show.ts";

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
        ...wholeOf(executed.operation),
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

export const REFUSALS = {
  stopped:
    "Not executed, and it will not run by itself later: work is paused by an operator. Ask for it again once it was resumed.",
  not_approved: "Not executed: the decision behind it is not approved any more.",
  expired_or_changed:
    "Not executed: the approval has expired, or is for something else than what would run. Propose it again.",
  rule_ended:
    "Not executed: the standing rule that allowed it has ended. Propose it again, so that a person is asked.",
  circuit_open:
    "circuit_open: not executed, because too many calls of this tool in a row were refused in review or failed. Change the plan; a person has to close its breaker first.",
  claim_lost:
    "Not executed: the claim on the task is over, another agent may hold it. Stop working on this task.",
  overtaken:
    "Not executed: another process is at the calls around this one, to undo them or to continue with them. Look again later.",
  delegation_ended: "Not executed: the delegation behind this has ended. Stop, and report back.",
  restored:
    "Not executed: the store was restored from a backup since this was approved, and it may have happened already. Look first, then propose it again.",
  used_up: "Not executed: this approval was used before.",
  nothing_to_undo:
    "Not executed: the store does not have the call to be undone as finished. It was undone before, or its outcome was lost. Look at the target first.",
  definition_changed:
    "Not executed: the tool was changed since it was allowed. Propose the call again, so that it is looked at anew.",
} as const;

/** Where the whole text of a failed call is, when the answer has a part of it. */
function wholeOf({ truncated, storedPath }: Operation): { truncated?: true; storedPath?: string } {
  return truncated ? { truncated, storedPath } : {};
}

/** For a call that is no longer in effect, whatever it answered when it was made. */
const UNDONE =
  "It was executed and undone afterwards: nothing of it is in effect. To do it again, ask for it as a new call with a new key.";

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
      return { answer: "failed", text: operation.error, operationId, ...wholeOf(operation) };
    case "returned":
      return permitted(operation, "was given back unused");
    case "started":
      if (operation.executor !== "")
        return permitted(operation, `is held by ${operation.executor}`);
      return unknown(operation);
    case "unknown":
      return unknown(operation);
  }
}

/** With the picture that its tool returned, which the record of an approved call keeps. */
async function recordedWhole(
  operation: Operation,
  { operations }: TenantStore,
): Promise<CallAnswer> {
  const answer = recorded(operation);
  if (answer.answer !== "done" || operation.decisionId === "") return answer;
  const data = await operations.picture(operation.id);
  return data === undefined ? answer : { ...answer, data };
}

function permitted({ id, decisionId }: Operation, how: string): CallAnswer {
  if (decisionId === "") {
    const text = `It was allowed before, and its permit ${how}. It is not known whether this happened, so it is not allowed a second time.`;
    return { answer: "unknown", text, operationId: id };
  }
  const text = `Approved as decision ${decisionId}. It is executed outside, and its permit ${how}. Do not repeat it; ask later.`;
  return { answer: "pending", text, decisionId, interactionId: decisionId };
}

function unknown({ id, error, status, attempt }: Operation): CallAnswer {
  // Recorded as unknown, it was asked about in the same transaction.
  const asked = status === "unknown" ? { interactionId: lostId(id, attempt) } : {};
  const why = error === "" ? "" : ` (${error})`;
  const text = `It is not known whether this happened${why}. Do not repeat it: a person has to look first.`;
  return { answer: "unknown", text, operationId: id, ...asked };
}

/** The decision under which a call continues that was edited, or went back to review; its own when neither happened. */
export async function latestOf(id: DecisionId, store: TenantStore): Promise<DecisionId> {
  const asked = await store.interactions.peek(id);
  if (asked === undefined || asked.supersededBy === "") return id;
  return latestOf(asked.supersededBy, store);
}

/** The result of one call of a decision, from what is stored: the same in every process, however often it is asked for. */
export async function resultOfDecision(
  id: DecisionId,
  step: number,
  store: TenantStore,
): Promise<CallAnswer> {
  const decision = await store.decisions.get(await latestOf(id, store));
  return withEdit(store, decision, step, await resultAsStored(decision, step, store));
}

async function resultAsStored(
  decision: Decision,
  step: number,
  store: TenantStore,
): Promise<CallAnswer> {
  const { id } = decision;
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
      if (operation !== undefined) return recordedWhole(operation, store);
      if (isExternal(await store.interactions.shown(id))) return awaitsPermit(id);
      return (await store.killSwitch.isStopped()) ? held(id) : approved(id);
    case "executed":
      return operation === undefined ? closedByHand(decision) : recordedWhole(operation, store);
    case "failed":
      return { answer: "failed", text: failureOf(decision, operation) };
  }
}

/**
 * Tells the agent what people changed in its call: what it asked for, what was decided on and what ran are three facts. The
 * answer itself for a call that was not edited.
 */
export async function withEdit(
  store: TenantStore,
  decision: Decision,
  step: number,
  answer: CallAnswer,
): Promise<CallAnswer> {
  const by = new Set<string>();
  let first = decision;
  for (let { facts } = requestedBy(first); ; { facts } = requestedBy(first)) {
    const { editedFrom, editedBy, cameBackFrom } = facts;
    const before = editedFrom ?? cameBackFrom;
    if (typeof before !== "string") break;
    if (typeof editedBy === "string") by.add(editedBy);
    first = await store.decisions.get(before);
  }
  if (by.size === 0) return answer;
  const original = decodeProposal(first).calls[step]?.input ?? null;
  const input = decodeProposal(decision).calls[step]?.input ?? null;
  const changes = definitionDifference({ input: original }, { input });
  if (changes.length === 0) return answer;
  const shown = await store.interactions.shown(decision.id);
  const redact = redactorOf(shown?.definitions[step]);
  const [was, is] = [redact("", { input: original }), redact("", { input })];
  const visible = new Map(definitionDifference(was, is).map((change) => [change.path, change]));
  const fields = changes.map(({ path }) => path.replace(/^input\.?/, ""));
  const named = changes.map(({ path }, index) => {
    const { before, after } = visible.get(path) ?? HIDDEN;
    const change = `${oneLine(after || "nothing", 80)} instead of ${oneLine(before || "nothing", 80)}`;
    return fields[index] === "" ? change : `${fields[index]} (${change})`;
  });
  const people = [...by];
  const text = `${answer.text}\nNote: ${people.join(" and ")} changed your call, and only the changed one counts: ${named.join(", ")}.`;
  const edited = { by: people, original: was["input"] ?? null, input: is["input"] ?? null, fields };
  return { ...answer, text, edited };
}

const HIDDEN = { before: "a secret value", after: "another secret value" };

/** What a reviewer typed into a secret field reaches the tool, never the agent. Without a definition all of it is secret. */
function redactorOf(definition: JsonObject | undefined): Redactor {
  const inputSchema = definition?.["inputSchema"];
  const secret = isJsonObject(inputSchema) ? secretFieldsOf({ inputSchema }) : [["*"]];
  return createRedactor({ secretPaths: secret.map((field) => ["input", ...field]) });
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
  const text = `Approved. Work is paused; it runs when it is resumed, as decision ${id}. Do not repeat it; ask later.`;
  return { answer: "pending", text, decisionId: id, interactionId: id };
}

/** An approval in a process that cannot execute it. */
export function awaitsTool(id: DecisionId, tool: string): CallAnswer {
  const text = `Approved as decision ${id}. This process does not have "${tool}": a process that has it executes the call. Do not repeat it; ask later.`;
  return { answer: "pending", text, decisionId: id, interactionId: id };
}

/** An approval of calls that the gate does not execute. */
export function awaitsPermit(id: DecisionId): CallAnswer {
  const text = `Approved as decision ${id}. An external executor carries it out, with a permit. Do not repeat it; ask later.`;
  return { answer: "pending", text, decisionId: id, interactionId: id };
}

/** Whether external executors run the calls that were shown. A decision has calls of one kind only. */
export function isExternal(shown: Shown | undefined): boolean {
  return shown?.definitions.some(({ execution }) => execution === "external") === true;
}

function approved(id: DecisionId): CallAnswer {
  const text = `Approved as decision ${id} and about to be executed. Do not repeat it; ask later.`;
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
  /** Returns a lost outcome as soon as a person is asked about it: they have to look at the target, which takes time. */
  readonly untilLost?: true;
}

/** Notifications may be late or missing, so it polls as well. */
const LOOK_EVERY_MS = 1_000;

/** A call that is running, or whose outcome was lost and waits for a person, is open as well. */
export function isSettled(answer: CallAnswer | undefined): boolean {
  return answer?.answer !== "pending" && answer?.answer !== "unknown";
}

function isLost(answer: CallAnswer | undefined): boolean {
  return answer?.answer === "unknown" && answer.interactionId !== undefined;
}

/** Reads, and reads again after every commit, until the answer is final or the time is over. */
export async function waitFor(
  { timers, onCommit }: GateContext,
  look: () => Promise<CallAnswer | undefined>,
  { timeoutMs, signal, untilLost }: WaitOptions,
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
      const isEnd = isSettled(answer) || (untilLost === true && isLost(answer));
      if (isEnd || over || signal?.aborted === true) return answer;
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

// Calls that are asked for again: by their key, by an id that an answer had, or with the same content.

/** The answer to a key that is used again for another call. */
export const OTHER_CALL: CallAnswer = Object.freeze({
  answer: "failed",
  text: "Not executed: this key was used for another call. Give every call its own key, and the same one only to repeat it.",
});

/** What a key of a session refers to: at most one of them, and nothing when it was never used. */
interface Standing {
  readonly decided: Awaited<ReturnType<TenantStore["interactions"]["ofCall"]>>;
  readonly operation: Operation | undefined;
  readonly asked: Interaction | undefined;
}

async function standingFor(sessionId: string, key: string, store: TenantStore): Promise<Standing> {
  const [decided, operation, asked] = await Promise.all([
    store.interactions.ofCall(sessionId, key),
    operationOf(callKeyId(sessionId, key), store),
    store.interactions.peek(questionId(sessionId, key)),
  ]);
  return { decided, operation, asked };
}

/** The operation of the call with this key, also where people edited the call. Undefined when it was not begun. */
export async function operationOfKey(
  sessionId: string,
  key: string,
  store: TenantStore,
): Promise<Operation | undefined> {
  const { decided, operation } = await standingFor(sessionId, key, store);
  if (decided === undefined) return operation;
  let asked = await store.interactions.peek(decided.decisionId);
  while (asked !== undefined && asked.supersededBy !== "") {
    asked = await store.interactions.peek(asked.supersededBy);
  }
  return operationOf(`${asked?.decisionId ?? decided.decisionId}.${decided.step}`, store);
}

/**
 * What became of a call or a question of this session, by any id that an answer carries: its key, its decision, its
 * interaction or its operation. Undefined when there is none. Of several calls in one decision: the first.
 */
export async function resultOfId(
  sessionId: string,
  id: string,
  store: TenantStore,
): Promise<CallAnswer | undefined> {
  const byKey = await resultOf(await standingFor(sessionId, id, store), store);
  if (byKey !== undefined) return byKey;
  const asked = await store.interactions.peek(id);
  if (asked?.sessionId === sessionId) {
    if (asked.type === "confirm") return resultOfDecision(id, 0, store);
    if (asked.type === "ask_user") return callAnswerOf(answerOfQuestion(asked));
    const lost = await operationOf(asked.operationId, store);
    if (lost !== undefined) return recordedWhole(lost, store);
  }
  const operation = await operationOf(id, store);
  return operation?.sessionId === sessionId
    ? recordedWhole(operation, store)
    : resultOfStaged(sessionId, id, store);
}

/** A decision without an interaction yet. */
async function resultOfStaged(
  sessionId: string,
  id: string,
  store: TenantStore,
): Promise<CallAnswer | undefined> {
  try {
    const decision = await store.decisions.get(id);
    return decision.sessionId === sessionId ? await resultOfDecision(id, 0, store) : undefined;
  } catch (error) {
    if (isSallyportError(error, "not_found")) return undefined;
    throw error;
  }
}

async function resultOf(
  { decided, operation, asked }: Standing,
  store: TenantStore,
): Promise<CallAnswer | undefined> {
  if (decided !== undefined) return resultOfDecision(decided.decisionId, decided.step, store);
  if (operation !== undefined) return recorded(operation);
  return asked === undefined ? undefined : callAnswerOf(answerOfQuestion(asked));
}

/** The same for a repeated call: with another content the key is refused. */
export async function resultOfCall(
  context: GateContext,
  sessionId: string,
  call: KeyedCall,
): Promise<CallAnswer | undefined> {
  const { store } = context;
  const standing = await standingFor(sessionId, call.key, store);
  return isOtherCall(context, sessionId, call, standing) ? OTHER_CALL : resultOf(standing, store);
}

type KeyedCall = Pick<CallRequest, "tool" | "input"> & { readonly key: string };

/** True when the key refers to something else: a call with another tool or another input, or another question. */
function isOtherCall(
  context: GateContext,
  sessionId: string,
  { key, tool: name, input }: KeyedCall,
  { decided, operation, asked }: Standing,
): boolean {
  if (decided === undefined && operation === undefined && asked === undefined) return false;
  const tool = context.registry.get(name);
  // Without the tool the inputs cannot be compared; the stored answer stays true.
  if (tool === undefined) return false;
  const read = readRequest(context, tool, input);
  if ("text" in read) return true;
  if (decided !== undefined) return decided.actionHash !== callHash(tool.name, read.input);
  if (operation !== undefined) {
    return operation.tool !== tool.name || operation.input !== canonicalJson(read.input);
  }
  if (tool.name !== ASK_USER) return true;
  return asked?.hash !== questionHash(sessionId, { ...questionIn(read.input), callId: key });
}

/** What an identical call of the session led to before. */
export interface Earlier {
  /** The decision that asked last; empty when none did. */
  readonly latest: DecisionId | "";
  /** What became of it, if it was not executed yet and still may be. */
  readonly unused?: DecisionId;
}

/**
 * What became of `latest`, the decision that asked last for the same content. An agent that lost track of a call asks for it again, often under a new call id. While the first one waits, or is approved
 * and was not executed, that one is the answer; what was executed, refused or has expired does not count. Siblings of one
 * message are not retries of each other.
 */
export async function earlierCall(
  { store, clock }: GateContext,
  latest: DecisionId | undefined,
  isSibling: (decision: Decision) => boolean,
): Promise<Earlier> {
  if (latest === undefined) return { latest: "" };
  let asked = await store.interactions.peek(latest);
  // Edited, or back in review: the call continues under another id.
  while (asked !== undefined && asked.supersededBy !== "") {
    asked = await store.interactions.peek(asked.supersededBy);
  }
  if (asked === undefined || fromIso(asked.deadline) <= clock.now()) return { latest };
  const { decisionId } = asked;
  const decision = await store.decisions.get(decisionId);
  if (isSibling(decision)) return { latest };
  const { state } = decision;
  const isWaiting = state === "pending_ml" && asked.status === "open";
  const isApproved =
    state === "approved" && (await operationOf(`${decisionId}.0`, store)) === undefined;
  return isWaiting || isApproved ? { latest, unused: decisionId } : { latest };
}

/** A question in the words of a call, for models that ask through a tool. */
export function callAnswerOf(asked: QuestionAnswer): CallAnswer {
  const { interactionId } = asked;
  switch (asked.answer) {
    case "pending":
      return { answer: "pending", text: asked.text, decisionId: "", interactionId };
    case "answered": {
      const { value } = asked;
      const text = typeof value === "string" ? value : canonicalJson(value);
      return {
        answer: "done",
        text,
        operationId: "",
        data: value,
        truncated: false,
        storedPath: "",
      };
    }
    case "unanswered":
      return { answer: "failed", text: asked.text };
  }
}

/**
 * The decision behind a call that could not be put before people now: another caller proposed the same keyed call first,
 * another process continued a review that it took for abandoned, or the guard refused, and then the upkeep asks the guard
 * again. Every other error is thrown again.
 */
export function standingDecision(error: unknown): DecisionId {
  const stands = STANDING.some((code) => isSallyportError(error, code));
  const id = error instanceof SallyportError && stands ? error.details["id"] : undefined;
  if (typeof id === "string") return id;
  throw error;
}

const STANDING = ["already_exists", "dependency_denied", "illegal_transition"] as const;
