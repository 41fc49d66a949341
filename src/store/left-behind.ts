import type { Decision, DecisionId } from "../model/decision.ts";
import { DECISIONS } from "../model/decision.ts";
import { checkName } from "../model/names.ts";
import { OPERATIONS, type Operation, type OperationId } from "../model/operation.ts";
import { TASK_QUEUE } from "../model/task.ts";
import { decisionOf } from "./decision-rows.ts";
import { engineDecisions, failedMove } from "./decisions.ts";
import { along, NOW, type Step } from "./engine.ts";
import { LIVE } from "./engine-tasks.ts";
import type { Hold } from "./operations.ts";
import { type Found, pageOf } from "./readable.ts";
import type { ClaimRef } from "./tasks.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/**
 * What processes that went away may have left behind, in pages: recovery goes through all of it, however much of it cannot be
 * carried on. All ages are by the store's clock.
 */
export interface LeftBehind {
  /** Started operations whose lease ran out. */
  operations(page: Page): Promise<Found<Operation>>;
  /** Approved decisions, by any author. */
  approved(forAtLeastMs: number, page: Page): Promise<Found<Decision>>;
  /** Decisions that the gate staged and that no one was asked about; without those that others staged. */
  unasked(forAtLeastMs: number, page: Page): Promise<Found<Decision>>;
  /** Closes an approved decision that cannot be continued as failed; false when another process has continued it. */
  giveUp(id: DecisionId, giving: GivingUp): Promise<boolean>;
}

export interface Page {
  /** 0 for the beginning, or `next` of the page before. */
  readonly after: number;
  readonly limit: number;
}

export function engineLeftBehind(engine: TenantEngine): LeftBehind {
  return {
    operations({ after: afterOrd, limit }) {
      const where = { status: "started", lease_until: { atMost: NOW } };
      return pageOf(engine, OPERATIONS, { where, afterOrd, limit }, OPERATIONS.read);
    },
    approved(forAtLeastMs, { after: afterOrd, limit }) {
      const where = { state: "approved", updated_at: { atMost: { nowPlusMs: -forAtLeastMs } } };
      return pageOf(engine, DECISIONS, { where, afterOrd, limit }, decisionOf);
    },
    unasked(forAtLeastMs, { after: afterOrd, limit }) {
      const before = { atMost: { nowPlusMs: -forAtLeastMs } };
      const where = { unasked: before, updated_at: before };
      return pageOf(engine, DECISIONS, { where, afterOrd, limit }, decisionOf);
    },
    giveUp: (id, giving) => giveUp(engine, id, giving),
  };
}

export interface GivingUp {
  readonly reason: string;
  readonly actor: string;
  /** The operation that would come next: a process that has begun it owns the decision. */
  readonly unlessBegun: OperationId;
}

async function giveUp(
  engine: TenantEngine,
  id: DecisionId,
  { reason, actor, unlessBegun }: GivingUp,
): Promise<boolean> {
  checkName("actor", actor);
  const move = failedMove(id, reason, actor);
  const result = await engine.commit(along([{ step: notBegun(unlessBegun) }, move]));
  if (result.committed) return true;
  if (result.step === 0) return false;
  // It was closed before: the same report is a repeat, a different one is refused.
  await engineDecisions(engine).markFailed(id, reason, { actor });
  return true;
}

/** Holds while there is no such operation. */
export function notBegun(id: OperationId): Step & { readonly op: "require" } {
  return { op: "require", table: OPERATIONS, id, where: { status: "none" }, absent: "holds" };
}

/** A call of a bundle starts only while the call before it is not being undone. */
export function notTakenBack(undoId: OperationId): Hold {
  return { refusal: "overtaken", step: notBegun(undoId) };
}

/** A call of a bundle is undone only while the one after it is not being executed. */
export function notGoneOn(nextId: OperationId): Hold {
  const where = { status: { oneOf: ["success", "failed", "unknown", "rolled_back"] } };
  const step = { op: "require", table: OPERATIONS, id: nextId, where, absent: "holds" } as const;
  return { refusal: "overtaken", step };
}

/**
 * What must hold in the transaction that starts an effect for a session that works under this claim: the task is still
 * claimed with this fence, and its lease is not over by the store's clock. A worker that slept beyond its lease gets no
 * further than this, however late it wakes up.
 */
export function claimHold({ id, fence }: ClaimRef): Hold {
  return {
    refusal: "claim_lost",
    step: { op: "require", table: TASK_QUEUE, id, where: { fence, ...LIVE }, absent: "refuses" },
  };
}

/** How long people have to find out about a lost call before they are asked again. Silence does not settle what happened. */
export const LOST_MS = 30 * 24 * 3_600_000;
