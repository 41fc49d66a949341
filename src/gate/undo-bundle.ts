import type { CallAnswer } from "../model/call.ts";
import type { Decision } from "../model/decision.ts";
import type { TenantStore } from "../store/store.ts";
import { operationOf, resultOfDecision } from "./answers.ts";
import { rollback } from "./rollback.ts";
import { describeRollback } from "./rollback-report.ts";
import type { UndoDispatch } from "./undo.ts";

/**
 * Takes back what was done of a decision, newest first, and closes it with what became of that. May be repeated. False, and
 * the decision stays open, when somebody else carries it out: what they do is not ours to take back.
 */
export async function takeBackAll(
  { id, sessionId }: Decision,
  reason: string,
  { store, dispatchUndo: dispatch }: { store: TenantStore; dispatchUndo: UndoDispatch },
): Promise<boolean> {
  const { operations, leftBehind } = store;
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

/**
 * Whoever is slow (its line was cut, its process was stopped) may find that somebody else has carried a decision out
 * meanwhile, or is at this step of it.
 */
export async function isElsewhere(
  { id }: Decision,
  step: number,
  store: TenantStore,
): Promise<boolean> {
  if ((await store.decisions.get(id)).state !== "approved") return true;
  return (await operationOf(`${id}.${step}`, store)) !== undefined;
}

/** What others recorded of its calls from this step on: that is the answer then. */
export function recordedFrom(
  first: number,
  { id }: Pick<Decision, "id">,
  steps: number,
  store: TenantStore,
): Promise<readonly CallAnswer[]> {
  const left = Array.from({ length: steps - first }, (_, n) => first + n);
  return Promise.all(left.map((step) => resultOfDecision(id, step, store)));
}
