// Step "undo": undoes one operation by a call of its own. Before it: settle has stored the undo record, and rollback has planned
// the order. After it: attempt, for the undoing call.

import type { DecisionId } from "../model/decision.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import { foldName, isName } from "../model/names.ts";
import type { CallAnswer, Operation, OperationId, RecordedUndo } from "../model/operation.ts";
import { allow } from "../policy/answers.ts";
import { notGoneOn, type OperationStore } from "../store/operations.ts";
import { errorText, oneLine } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import { answerOf } from "./answers.ts";
import { runOrder } from "./attempt.ts";
import type { GateContext } from "./context.ts";
import { eventOf, hooksAt, saidIn } from "./hooks.ts";
import { type Caller, goesThroughLink, judgeCall } from "./judge.ts";
import { targetChangedSince, watchEarlier } from "./order.ts";
import type { RollbackFinding } from "./rollback-report.ts";

export interface UndoRequest {
  /** The operation to undo. Its `stateVersion` shows whether the target was changed since; empty: it is not known. */
  readonly operation: Operation;
  /** What to call for it: tool and input. */
  readonly undo: RecordedUndo;
  /** Operations whose targets may be as they left them once this one is undone; see `sharesTarget`. */
  readonly earlier: readonly Operation[];
  readonly undoOperationId: OperationId;
  readonly by: string;
}

/**
 * Makes one undo, through gate, attempt and audit log like any other call. It
 * - starts an operation with the id `undoOperationId` and `undoOf` set, and answers `used_up` when the store refuses that;
 * - answers `conflicted`, without calling the tool, when the target is no longer in `operation.stateVersion`;
 * - settles a success together with `tookBack` and with what of `earlier` it has brought back, and records no undo of it,
 *   because an undo is never undone;
 * - stages at most one decision per `undoOperationId`: asked again while it is open, it answers `pending` with the same one.
 */
export type UndoDispatch = (request: UndoRequest) => Promise<UndoAnswer>;

/** Any answer to a call, and the two that only an undo gets. */
export type UndoAnswer =
  | { readonly answer: Exclude<CallAnswer["answer"], "pending">; readonly text: string }
  | { readonly answer: "pending"; readonly text: string; readonly decisionId: DecisionId }
  | { readonly answer: "conflicted"; readonly text: string }
  | { readonly answer: "used_up"; readonly operation: Operation };

export interface TakeBackParts {
  readonly operations: Pick<OperationStore, "get">;
  readonly dispatch: UndoDispatch;
  readonly by: string;
}

export interface Planned extends Pick<UndoRequest, "operation" | "undo" | "earlier"> {
  /** Those that changed its target after it; while one of them is in effect, this one is not undone. */
  readonly later: readonly Operation[];
}

/** Dispatches the undo of one operation, unless another attempt at it is alive or has succeeded. Never throws. */
export async function takeBack(
  { operation: planned, undo, earlier: then, later }: Planned,
  { operations, dispatch, by }: TakeBackParts,
): Promise<RollbackFinding> {
  let from = 1;
  let undoOperationId = "";
  try {
    // An undo just before may have brought its target back under another version.
    const operation = await operations.get(planned.id);
    const above = (await inEffect(later, operations))[0];
    if (above !== undefined) return underneath(above);
    const earlier = await inEffect(then, operations);
    for (;;) {
      const attempt = await nextAttempt(operations, operation.id, from);
      if (attempt.state === "exhausted") return exhausted();
      if (attempt.state === "taken") return findingOfOther(attempt.by);
      undoOperationId = attempt.undoOperationId;
      const answer = await dispatch({ operation, undo, earlier, undoOperationId, by });
      if (answer.answer === "conflicted") {
        // The target may have been changed by another rollback, which undid this operation in the meantime.
        const now = await nextAttempt(operations, operation.id, attempt.number);
        if (now.state === "taken") return findingOfOther(now.by);
      }
      if (answer.answer !== "used_up") return { ...findingOf(answer), undoOperationId };
      if (answer.operation.undoOf === operation.id) return findingOfOther(answer.operation);
      // The id was taken by the undo of another operation concurrently.
      from = attempt.number + 1;
    }
  } catch (error) {
    return afterThrow(operations, planned, undoOperationId, error);
  }
}

/** As they are now: what was undone just before may have changed them. */
async function inEffect(
  listed: readonly Operation[],
  operations: TakeBackParts["operations"],
): Promise<readonly Operation[]> {
  const now = await Promise.all(listed.map(({ id }) => operations.get(id)));
  return now.filter(({ status }) => status === "success");
}

function underneath({ id, tool }: Operation): RollbackFinding {
  const reason = `Its target was changed since by ${id} (${tool}), which is still in effect. Undo that one first.`;
  return { outcome: "conflicted", reason };
}

function findingOf(answer: Exclude<UndoAnswer, { answer: "used_up" }>): RollbackFinding {
  const text = oneLine(answer.text);
  switch (answer.answer) {
    case "done":
      return { outcome: "undone", reason: `It was undone: ${text}` };
    case "failed":
      return { outcome: "failed", reason: `Taking it back failed: ${text}` };
    case "denied":
      return { outcome: "failed", reason: `Taking it back was denied: ${text}` };
    case "conflicted":
      return { outcome: "conflicted", reason: `Its target was changed since: ${text}` };
    case "pending": {
      const reason = `Taking it back waits for approval, nothing was executed: ${text}`;
      return { outcome: "pending", reason, decisionId: answer.decisionId };
    }
    case "unknown":
      return {
        outcome: "unfinished",
        reason: `Taking it back may or may not have worked: ${text}`,
      };
    default:
      // Only an untyped dispatcher gets here. Without this its operation would be missing in the report.
      throw new TypeError("the dispatcher gave an answer that does not exist");
  }
}

/** The id is taken: by a concurrent rollback, or by one before a crash. */
function findingOfOther({ id: undoOperationId, status, error }: Operation): RollbackFinding {
  switch (status) {
    case "success":
    case "rolled_back":
      return { outcome: "skipped", reason: "It was undone before.", undoOperationId };
    case "failed": {
      const reason = `Taking it back failed in another rollback: ${oneLine(error)}`;
      return { outcome: "failed", reason, undoOperationId };
    }
    case "returned":
    case "started": {
      const reason = "It is being undone now, or that was cut off and is left to recovery.";
      return { outcome: "unfinished", reason, undoOperationId };
    }
    case "unknown": {
      const reason = `Taking it back may or may not have worked: ${oneLine(error)}`;
      return { outcome: "unfinished", reason, undoOperationId };
    }
  }
}

/** An exception says nothing about the outcome; the store knows it, if it can be asked. */
async function afterThrow(
  operations: Pick<OperationStore, "get">,
  { id }: Operation,
  undoOperationId: OperationId | "",
  error: unknown,
): Promise<RollbackFinding> {
  const text = errorText(error);
  if (undoOperationId === "") {
    return { outcome: "unfinished", reason: `Not tried: the store could not be asked: ${text}` };
  }
  try {
    const found = await lookUp(operations, undoOperationId);
    if (found?.undoOf === id && found.status === "success") {
      const reason = `It was undone, but the answer got lost: ${text}`;
      return { outcome: "undone", reason, undoOperationId };
    }
    if (found?.undoOf === id) return findingOfOther(found);
    const reason = `Taking it back could not be started: ${text}`;
    return { outcome: "failed", reason, undoOperationId };
  } catch {
    const reason = `Taking it back was cut off, and the store could not be asked: ${text}`;
    return { outcome: "unfinished", reason, undoOperationId };
  }
}

function exhausted(): RollbackFinding {
  const reason = `Taking it back failed ${UNDO_TRIES_MAX} times; it is not tried any more.`;
  return { outcome: "failed", reason };
}

/** After so many failures another attempt is not expected to help. */
export const UNDO_TRIES_MAX = 100;

/** The next attempt at undoing one operation, or the earlier one that blocks it. */
export type UndoAttempt =
  | { readonly state: "free"; readonly undoOperationId: OperationId; readonly number: number }
  | { readonly state: "taken"; readonly by: Operation }
  | { readonly state: "exhausted" };

/**
 * The id of an attempt is made from the operation that it undoes, so that every process that wants to undo it, before or after
 * a crash, asks the store for the same id, and the store gives it to one of them.
 */
export function undoIdOf(id: OperationId, number: number): OperationId {
  const suffix = number === 1 ? "" : `.${number}`;
  const name = `undo.${id}${suffix}`;
  return isName(name) ? name : `undo.${sha256Hex(id)}${suffix}`;
}

/**
 * Number n + 1 is used only when n failed, and a failure is final: so at most one attempt is alive or has succeeded. One that
 * belongs to another operation is skipped: a second attempt at `a` and a first one at `a.2` have the same id.
 */
export async function nextAttempt(
  operations: Pick<OperationStore, "get">,
  id: OperationId,
  from = 1,
): Promise<UndoAttempt> {
  for (let number = from; number <= UNDO_TRIES_MAX; number += 1) {
    const undoOperationId = undoIdOf(id, number);
    const found = await lookUp(operations, undoOperationId);
    if (found === undefined) return { state: "free", undoOperationId, number };
    if (found.undoOf === id && found.status !== "failed") return { state: "taken", by: found };
  }
  return { state: "exhausted" };
}

/** Undefined when there is none. */
async function lookUp(
  operations: Pick<OperationStore, "get">,
  id: OperationId,
): Promise<Operation | undefined> {
  try {
    return await operations.get(id);
  } catch (error) {
    if (isSallyportError(error, "not_found")) return undefined;
    throw error;
  }
}

/**
 * An undo is a call like any other: same gate, its own operation, its own entries. The person who asked for the rollback has
 * consented to what a person would be asked about; a denial stays a denial. Those in `chain` asked for the calls, so their
 * consent does not count.
 */
export function undoDispatcher(context: GateContext, chain: readonly string[]): UndoDispatch {
  const { observer, store } = context;
  const { tenant, refusals } = store;
  return async ({ operation, undo, earlier, undoOperationId, by }): Promise<UndoAnswer> => {
    const { sessionId, turn, workingDirectory, decisionId, step } = operation;
    const request = { callId: undoOperationId, tool: undo.tool, input: undo.input };
    const caller: Caller = { tenant, workingDirectory, sessionId, chain: [by] };
    const isHooked = context.hooks.length > 0;
    const event = () => ({ ...eventOf("before_undo", caller), ...request, id: operation.id });
    const veto = isHooked ? await hooksAt(context, event()) : allow();
    const judged =
      veto.answer === "allow"
        ? await judgeCall(context, request, caller, "undo")
        : ({ verdict: "deny", text: saidIn(veto) } as const);
    const refuse = async (outcome: "denied" | "failed", text: string): Promise<UndoAnswer> => {
      const data = { tool: undo.tool, verdict: judged.verdict, undo_of: operation.id };
      await refusals.record({ callId: undoOperationId, sessionId, actor: by, data });
      observer.refused({ ...request, turn, sessionId, outcome });
      return { answer: outcome, text };
    };
    if (judged.verdict === "failed") return refuse("failed", judged.text);
    if (judged.verdict === "deny") return refuse("denied", judged.text);
    if (judged.verdict === "ask" && chain.map(foldName).includes(foldName(by))) {
      return refuse("denied", NEEDS_A_PERSON);
    }
    // The undo record names the place that was changed. No one approved a link that now leads elsewhere.
    const { resources } = judged.facts;
    if (judged.verdict === "ask" && (await goesThroughLink(resources, workingDirectory))) {
      return { answer: "conflicted", text: LINKED };
    }
    const changed = await targetChangedSince(context, operation);
    if (changed !== undefined) return { answer: "conflicted", text: changed };
    const broughtBack = await watchEarlier(context, operation, earlier);
    const executed = await runOrder(context, {
      operationId: undoOperationId,
      tool: judged.tool,
      definitionHash: judged.definition,
      input: judged.input,
      sessionId,
      messageId: operation.messageId,
      callId: undoOperationId,
      turn,
      step: 0,
      workingDirectory,
      places: judged.places,
      judgePlace: judged.judgePlace,
      undoOf: operation.id,
      broughtBack,
      ...(decisionId === "" ? {} : { holds: [notGoneOn(`${decisionId}.${step + 1}`)] }),
      chain: [by, ...operation.chain],
      actor: by,
    });
    if (executed.status === "overtaken")
      return { answer: "used_up", operation: executed.operation };
    if (executed.status === "refused" && executed.operation !== undefined) {
      return { answer: "used_up", operation: executed.operation };
    }
    const { answer, text } = answerOf(executed);
    const result = { answer, text };
    if (isHooked) await hooksAt(context, { ...event(), point: "after_undo", result });
    if (answer === "pending")
      throw new SallyportError("illegal_transition", { id: undoOperationId });
    return { answer, text };
  };
}

const LINKED =
  "A link was put in the way of the path since, so nothing was changed. Look at it before you undo this by hand.";

const NEEDS_A_PERSON =
  "Taking this back needs a person's consent, and the one who asked for it made the call. Let a person ask for the rollback.";
