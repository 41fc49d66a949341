// Rolling back a session, a message, a call or a decision: which operations to undo, in which order. After it: undo, for each of them.

import type { Decision } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import type { CallAnswer, Operation, OperationId, RecordedUndo } from "../model/operation.ts";
import type { OperationStore } from "../store/operations.ts";
import type { GateContext } from "./context.ts";
import { type LogScope, listOperations } from "./operation-log.ts";
import type { Executed } from "./order.ts";
import {
  describeRollback,
  type RollbackFinding,
  type RollbackReport,
  reportOf,
} from "./rollback-report.ts";
import { takeBack, type UndoDispatch, undoDispatcher } from "./undo.ts";

/** A whole session, one message of it, or one call. */
export interface RollbackScope extends LogScope {
  readonly operationId?: OperationId;
  /** Only these of them; the others are left alone and not reported. */
  readonly only?: readonly OperationId[];
}

export interface RollbackOptions {
  readonly operations: Pick<OperationStore, "get" | "listBySession">;
  readonly scope: RollbackScope;
  readonly dispatch: UndoDispatch;
  /** Who asked for it. */
  readonly by: string;
  /** `stop` when left out. */
  readonly whenUnfinished?: WhenUnfinished;
  /** Looked at between two compensations; one that runs is left to end. */
  readonly signal?: AbortSignal;
}

/**
 * Undoes what a session, a message or a call did: backwards, one after the other, each at most once however often and from
 * wherever it is asked for. It only orders; every undo is a call like any other, made by `dispatch`. One that fails does not
 * stop the rest. One whose outcome is open (it waits for approval, another process runs it, its answer was lost) does, unless
 * `whenUnfinished` says otherwise, because an older call must not be undone before the calls that build on it.
 *
 * The report holds every operation that was there when it began, however many, without those that only read. Throws
 * not_found for a call that is not of this session, invalid_input for a scope that names something empty.
 */
export async function rollback(options: RollbackOptions): Promise<RollbackReport> {
  const { operations, scope, signal, whenUnfinished = "stop" } = options;
  checkName("actor", options.by);
  const own = await operationsIn(operations, scope);
  const plan = planRollback(own, whenUnfinished);
  const all = plan.some(knowsVersion) ? await allOf(operations, scope, own) : [];
  const findings: { operation: Operation; finding: RollbackFinding }[] = [];
  let held = "";
  for (const step of plan) {
    const { operation } = step;
    if (step.action === "list") {
      findings.push({ operation, finding: step.finding });
      continue;
    }
    if (signal?.aborted) held ||= "Not tried: the rollback was stopped before its turn.";
    if (held !== "") {
      findings.push({ operation, finding: { outcome: "unfinished", reason: held } });
      continue;
    }
    const earlier = sharesTarget(operation, all);
    const finding = await takeBack({ ...step, earlier, later: changedBy(operation, all) }, options);
    findings.push({ operation, finding });
    const isOpen = finding.outcome === "pending" || finding.outcome === "unfinished";
    if (isOpen && whenUnfinished === "stop") held = heldBy(operation, finding);
  }
  return reportOf(findings);
}

const WRITES = { without: "reads" } as const;

function knowsVersion({ action, operation }: PlanStep): boolean {
  return action === "dispatch" && operation.stateVersion !== "";
}

/** What a message or a call found may have been left by any call of the session. */
async function allOf(
  operations: RollbackOptions["operations"],
  { sessionId, messageId, operationId, only }: RollbackScope,
  own: readonly Operation[],
): Promise<readonly Operation[]> {
  const isWhole = messageId === undefined && operationId === undefined && only === undefined;
  return isWhole ? own : operations.listBySession(sessionId, WRITES);
}

function heldBy({ id, tool }: Operation, { outcome }: RollbackFinding): string {
  const why = outcome === "pending" ? "waits for approval" : "has not come to an end";
  return (
    `Not tried: it comes before ${id} (${tool}), and taking that back ${why}. ` +
    "Roll back again afterwards, or ask for a rollback around it."
  );
}

export async function operationsIn(
  operations: RollbackOptions["operations"],
  scope: RollbackScope,
): Promise<readonly Operation[]> {
  const { sessionId, messageId, operationId, only } = scope;
  if (!Object.hasOwn(scope, "operationId")) {
    const all = await listOperations(operations, scope, WRITES);
    return only === undefined ? all : chosenOf(all, only);
  }
  checkName("session id", sessionId);
  checkName("operation id", operationId);
  if (Object.hasOwn(scope, "messageId")) checkName("message id", messageId);
  const operation = await operations.get(operationId);
  const isOfMessage = messageId === undefined || operation.messageId === messageId;
  if (operation.sessionId === sessionId && isOfMessage) return [operation];
  throw new SallyportError("not_found", { id: operationId });
}

/** Throws not_found for one that is not among them: a selection must not be shorter than its reader thinks. */
function chosenOf(all: readonly Operation[], only: readonly OperationId[]): readonly Operation[] {
  const missing = only.find((id) => !all.some((one) => one.id === id));
  if (missing !== undefined) throw new SallyportError("not_found", { id: missing });
  return all.filter(({ id }) => only.includes(id));
}

/**
 * Undoes what was executed of a decision, newest first, and closes it with a report of that. May be repeated. False, and the
 * decision stays open, when another process executes it.
 */
export async function takeBackAll(
  context: GateContext,
  { id, sessionId }: Decision,
  reason: string,
): Promise<boolean> {
  const { operations, leftBehind } = context.store;
  const dispatch = undoDispatcher(context, []);
  const done = await operations.listBySession(sessionId, { decisionId: id });
  if (done.some(({ status }) => status === "started" || status === "unknown")) return false;
  const reports: string[] = [];
  for (const { id: operationId, status, undo } of [...done].reverse()) {
    const isInEffect = status === "success" || (status === "failed" && undo !== undefined);
    if (!isInEffect) continue;
    const scope = { sessionId, operationId };
    reports.push(describeRollback(await rollback({ operations, scope, dispatch, by: "executor" })));
  }
  return leftBehind.giveUp(id, {
    reason: [reason, ...reports].join("\n"),
    actor: "executor",
    unlessBegun: `${id}.${done.length}`,
  });
}

/** A call whose result a review refused is undone at once; what came of that is part of the answer. */
export async function undoneIfBlocked(
  context: GateContext,
  executed: Executed,
  answer: CallAnswer,
): Promise<CallAnswer> {
  if (executed.status !== "failed" || executed.result.takeBack !== true) return answer;
  const { operations } = context.store;
  const { id: operationId, sessionId } = executed.operation;
  const scope = { sessionId, operationId };
  const dispatch = undoDispatcher(context, []);
  const report = await rollback({ operations, scope, dispatch, by: "executor" });
  return { ...answer, text: `${answer.text}\n${describeRollback(report)}` };
}

/**
 * What to do about operations whose outcome is not known yet: `stop` leaves everything as it is until it is known, `go_on`
 * undoes the others around them.
 */
type WhenUnfinished = "stop" | "go_on";

/** One operation of a rollback: either its compensation is dispatched, or it is only listed. */
type PlanStep =
  | { readonly action: "dispatch"; readonly operation: Operation; readonly undo: RecordedUndo }
  | { readonly action: "list"; readonly operation: Operation; readonly finding: RollbackFinding };

/**
 * The order of a rollback and what becomes of each operation, newest first, each exactly once. Pure. The given ones come
 * oldest first, as the store lists them. What to dispatch is read from the undo record alone: a description is for people,
 * and what a tool declares about itself today says nothing about what one call did.
 */
export function planRollback(
  operations: readonly Operation[],
  whenUnfinished: WhenUnfinished = "stop",
): readonly PlanStep[] {
  const steps = operations.toReversed().map(stepOf);
  const open = operations.filter(isUnfinished);
  if (open.length === 0 || whenUnfinished === "go_on") return steps;
  // Before anything has happened, not at the open one's turn: half a rollback is harder to understand than none.
  const reason =
    `Not tried: the outcome of ${namesOf(open)} is not known, and it may rest on this one. ` +
    `Find out what became of it, then roll back again, or ask for a rollback around it.`;
  return steps.map((step) =>
    step.action === "dispatch" ? list(step.operation, "unfinished", reason) : step,
  );
}

function stepOf(operation: Operation): PlanStep {
  // First of all, whatever its status: an undo is never undone.
  if (operation.undoOf !== "") {
    const reason = `It takes ${operation.undoOf} back itself (${operation.status}); a rollback leaves those alone.`;
    return list(operation, "skipped", reason);
  }
  switch (operation.status) {
    case "failed":
      return operation.undo === undefined
        ? list(operation, "skipped", "It failed, so there is nothing to undo.")
        : stepOfSuccess(operation);
    case "rolled_back":
      return list(operation, "skipped", "It was undone before.");
    case "returned":
      return list(operation, "skipped", "Its permit was given back: it was not executed.");
    case "started":
      return list(operation, "unfinished", "It is still running, or was cut off while it ran.");
    case "unknown":
      return list(
        operation,
        "unfinished",
        "Its outcome was lost: it may or may not have happened.",
      );
    case "success":
      return stepOfSuccess(operation);
  }
}

function stepOfSuccess(operation: Operation): PlanStep {
  const { undo, effect } = operation;
  if (undo === undefined && effect === "read") {
    return list(operation, "skipped", "It only read, so there is nothing to undo.");
  }
  if (undo === undefined) {
    return list(operation, "irreversible", "No way to take it back was recorded.");
  }
  // A record that names no tool cannot be dispatched, whatever it says about itself.
  if (undo.irreversible || undo.tool === "") {
    return list(operation, "irreversible", "It cannot be undone by a call.");
  }
  return { action: "dispatch", operation, undo };
}

/** Undos are considered together with the operations that they undo, not here. */
function isUnfinished({ status, undoOf }: Operation): boolean {
  return undoOf === "" && (status === "started" || status === "unknown");
}

function list(
  operation: Operation,
  outcome: RollbackFinding["outcome"],
  reason: string,
): PlanStep & { action: "list" } {
  return { action: "list", operation, finding: { outcome, reason } };
}

const NAMES_MAX = 3;

function namesOf(open: readonly Operation[]): string {
  const names = open.slice(0, NAMES_MAX).map(({ id, tool }) => `${id} (${tool})`);
  const more = open.length - names.length;
  return names.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** The operations that may be as they left their targets once this one is undone. Pure; the given ones come oldest first. */
function sharesTarget(operation: Operation, all: readonly Operation[]): readonly Operation[] {
  const changed = new Set(operation.undo?.alsoChanged?.map(({ id }) => id));
  const linked = all.filter(({ id }) => changed.has(id));
  return [...linked, ...leftAsFound(operation, all).filter(({ id }) => !changed.has(id))];
}

/** The later operations that changed the target of this one as well: before them it must not be undone. */
function changedBy({ id }: Operation, all: readonly Operation[]): readonly Operation[] {
  return all.filter(({ undo }) => undo?.alsoChanged?.some((one) => one.id === id));
}

/** Each costs two looks at its target, and versions that are counted are alike for many targets. */
const MOST = 20;

/**
 * The operations that have left the target as this one found it, as far as versions tell; the nearest first. Pure. The
 * given ones come oldest first. Taking this one back may bring those back to what they left: see `BroughtBack`.
 */
export function leftAsFound(operation: Operation, all: readonly Operation[]): readonly Operation[] {
  const found = operation.undo?.versionBefore ?? "";
  if (found === "") return [];
  const own = all.findIndex(({ id }) => id === operation.id);
  return all
    .slice(0, Math.max(own, 0))
    .filter((one) => one.status === "success" && one.undoOf === "" && one.stateVersion === found)
    .reverse()
    .slice(0, MOST);
}
