import type { SessionId } from "../model/decision.ts";
import { boundTo, isDelegated } from "../model/delegation.ts";
import type { OperationId } from "../model/operation.ts";
import { DELEGATIONS, delegationOf, delegationSteps } from "./delegation-rows.ts";
import type { Step } from "./engine.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** What is about to be carried out, as far as delegations care. */
export interface Bound {
  readonly sessionId: SessionId;
  readonly undoOf: OperationId | "";
  readonly actor: string;
}

/**
 * What must hold in the transaction that lets a session act, because somebody delegated to it. Found by the session's id
 * alone, here where every effect begins, so that no path has to remember it. Whoever takes back what a sub-agent did is bound
 * by what binds themselves.
 */
export async function boundSteps(
  engine: TenantEngine,
  { sessionId, undoOf, actor }: Bound,
  kind: Parameters<typeof delegationSteps>[1],
): Promise<readonly Step[]> {
  if (!isDelegated(sessionId)) return [];
  const row = await engine.get(DELEGATIONS, sessionId);
  // Its name says that somebody delegated to it. When nobody has, this step will not hold.
  if (row === undefined) return delegationSteps([sessionId], kind);
  const delegation = delegationOf(row);
  return delegationSteps(undoOf === "" ? delegation.chain : boundTo(delegation, actor), kind);
}
