import { SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import type { Operation, OperationId } from "../model/operation.ts";
import type { OperationStore } from "../store/operations.ts";
import { changedBy, sharesTarget } from "./left-as-found.ts";
import { type LogScope, listOperations } from "./list-operations.ts";
import { type PlanStep, planRollback, type WhenUnfinished } from "./plan-rollback.ts";
import { type RollbackFinding, type RollbackReport, reportOf } from "./rollback-report.ts";
import { takeBack, type UndoDispatch } from "./take-back.ts";

/** A whole session, one message of it, or one call. */
export interface RollbackScope extends LogScope {
  readonly operationId?: OperationId;
}

export interface RollbackOptions {
  readonly operations: Pick<OperationStore, "get" | "listBySession">;
  readonly scope: RollbackScope;
  readonly dispatch: UndoDispatch;
  /** Who asked for it. */
  readonly by: string;
  /** `stop` unless told otherwise. */
  readonly whenUnfinished?: WhenUnfinished;
  /** Looked at between two compensations; one that runs is left to end. */
  readonly signal?: AbortSignal;
}

/**
 * Takes back what a session, a message or a call did: backwards, one after the other, each at most once however often and
 * from wherever it is asked for. It only orders; every compensation is a call like any other, made by `dispatch`. One that
 * fails does not stop the rest. One whose end is open (it waits for approval, somebody else runs it, its answer was lost)
 * does, unless told otherwise, because what is older must not be taken back before what rests on it.
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
  { sessionId, messageId, operationId }: RollbackScope,
  own: readonly Operation[],
): Promise<readonly Operation[]> {
  const isWhole = messageId === undefined && operationId === undefined;
  return isWhole ? own : operations.listBySession(sessionId, WRITES);
}

function heldBy({ id, tool }: Operation, { outcome }: RollbackFinding): string {
  const why = outcome === "pending" ? "waits for approval" : "has not come to an end";
  return (
    `Not tried: it comes before ${id} (${tool}), and taking that back ${why}. ` +
    "Roll back again afterwards, or ask for a rollback around it."
  );
}

async function operationsIn(
  operations: RollbackOptions["operations"],
  scope: RollbackScope,
): Promise<readonly Operation[]> {
  const { sessionId, messageId, operationId } = scope;
  if (!Object.hasOwn(scope, "operationId")) return listOperations(operations, scope, WRITES);
  checkName("session id", sessionId);
  checkName("operation id", operationId);
  if (Object.hasOwn(scope, "messageId")) checkName("message id", messageId);
  const operation = await operations.get(operationId);
  const isOfMessage = messageId === undefined || operation.messageId === messageId;
  if (operation.sessionId === sessionId && isOfMessage) return [operation];
  throw new SallyportError("not_found", { id: operationId });
}
