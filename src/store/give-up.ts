import type { DecisionId } from "../model/decision.ts";
import { checkName } from "../model/names.ts";
import type { OperationId } from "../model/operation.ts";
import { along } from "./along.ts";
import { failedMove } from "./decision-moves.ts";
import type { Step } from "./engine.ts";
import { engineDecisions } from "./engine-decisions.ts";
import { OPERATIONS } from "./operation-rows.ts";
import type { Hold } from "./operations.ts";
import type { TenantEngine } from "./tenant-engine.ts";

export interface GivingUp {
  readonly reason: string;
  readonly actor: string;
  /** The operation that would come next: once somebody has begun it, the decision is theirs. */
  readonly unlessBegun: OperationId;
}

/** Closes an approved decision as failed; false when somebody has gone on with it in the meantime. */
export async function giveUp(
  engine: TenantEngine,
  id: DecisionId,
  { reason, actor, unlessBegun }: GivingUp,
): Promise<boolean> {
  checkName("actor", actor);
  const move = failedMove(id, reason, actor);
  const result = await engine.commit(along([{ step: notBegun(unlessBegun) }, move]));
  if (result.committed) return true;
  if (result.step === 0) return false;
  // It was closed before: the same report is a repeat, another one stands.
  await engineDecisions(engine).markFailed(id, reason, { actor });
  return true;
}

/** Holds while there is no such operation. */
export function notBegun(id: OperationId): Step & { readonly op: "require" } {
  return { op: "require", table: OPERATIONS, id, where: { status: "none" }, absent: "holds" };
}

/** A call of a bundle goes on only from a call that nobody is taking back. */
export function notTakenBack(undoId: OperationId): Hold {
  return { refusal: "overtaken", step: notBegun(undoId) };
}

/** A call of a bundle is taken back only while nobody carries out the one after it. */
export function notGoneOn(nextId: OperationId): Hold {
  const where = { status: { oneOf: ["success", "failed", "unknown", "rolled_back"] } };
  const step = { op: "require", table: OPERATIONS, id: nextId, where, absent: "holds" } as const;
  return { refusal: "overtaken", step };
}
