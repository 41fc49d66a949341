import { DECISIONS, type Decision, type DecisionId } from "../model/decision.ts";
import { checkName } from "../model/names.ts";
import { OPERATIONS, type Operation, type OperationId } from "../model/operation.ts";
import { type By, decisionOf, engineDecisions, executedMove, failedMove } from "./decisions.ts";
import { along, NOW, requireStep, updateStep } from "./engine.ts";
import { notBegun } from "./operations.ts";
import { type Found, readPage, type TenantEngine } from "./tenant-engine.ts";

/**
 * What processes that went away may have left behind, in pages: recovery goes through all of it, however much of it cannot be
 * carried on. All ages are by the store's clock.
 */
export interface LeftBehind {
  /** Started operations whose lease ran out. */
  operations(page: PageQuery): Promise<Found<Operation>>;
  /** Approved decisions, by any author. */
  approved(forAtLeastMs: number, page: PageQuery): Promise<Found<Decision>>;
  /** Decisions that the gate staged and that no one was asked about; without those that others staged. */
  unasked(forAtLeastMs: number, page: PageQuery): Promise<Found<Decision>>;
  /**
   * Notes that a process approved it that lacks one of its tools, so that one that has them all takes it up immediately.
   * Nothing is written when it is not approved any more, or was noted before.
   */
  awaitTool(id: DecisionId, by: By): Promise<void>;
  /** Approved decisions that wait for a process with their tools, noted at this moment (epoch ms) or later. */
  awaitingTool(since: number, page: PageQuery): Promise<Found<Decision>>;
  /** Closes an approved decision whose calls have all succeeded as executed; false when one of them has not, as stored now. */
  finish(id: DecisionId, finishing: Finishing): Promise<boolean>;
  /** Closes an approved decision that cannot be continued as failed; false when another process has continued it. */
  giveUp(id: DecisionId, giving: GivingUp): Promise<boolean>;
}

export interface PageQuery {
  /** 0 for the beginning, or `next` of the page before. */
  readonly after: number;
  readonly limit: number;
}

export function engineLeftBehind(engine: TenantEngine): LeftBehind {
  return {
    operations({ after: afterOrd, limit }) {
      const where = { status: "started", lease_until: { atMost: NOW } };
      return readPage(engine, OPERATIONS, { where, afterOrd, limit }, OPERATIONS.read);
    },
    approved(forAtLeastMs, { after: afterOrd, limit }) {
      const where = { state: "approved", updated_at: { atMost: { nowPlusMs: -forAtLeastMs } } };
      return readPage(engine, DECISIONS, { where, afterOrd, limit }, decisionOf);
    },
    unasked(forAtLeastMs, { after: afterOrd, limit }) {
      const before = { atMost: { nowPlusMs: -forAtLeastMs } };
      const where = { unasked: before, updated_at: before };
      return readPage(engine, DECISIONS, { where, afterOrd, limit }, decisionOf);
    },
    async awaitTool(id, { actor }) {
      checkName("actor", actor);
      const where = { state: "approved", awaits_tool: null };
      const session = { left: "session_id", step: 0 };
      await engine.commit({
        steps: [updateStep(DECISIONS, id, where, { awaits_tool: NOW })],
        events: [{ type: "decision.awaits_tool", subject: id, session, actor, data: {} }],
      });
    },
    awaitingTool(since, { after: afterOrd, limit }) {
      const where = { awaits_tool: { atLeast: since }, state: "approved" };
      return readPage(engine, DECISIONS, { where, afterOrd, limit }, decisionOf);
    },
    finish: (id, finishing) => finish(engine, id, finishing),
    giveUp: (id, giving) => giveUp(engine, id, giving),
  };
}

export interface Finishing {
  readonly calls: readonly OperationId[];
  readonly actor: string;
}

/** The outcomes are compared as they are written: those that were read before may have been lost with the tail of the trail. */
async function finish(
  engine: TenantEngine,
  id: DecisionId,
  { calls, actor }: Finishing,
): Promise<boolean> {
  checkName("actor", actor);
  const proof = { steps: calls.length };
  const done = calls.map((call) => ({
    step: requireStep(OPERATIONS, call, { status: "success" }),
  }));
  const result = await engine.commit(along([executedMove(id, proof, actor), ...done]));
  if (result.committed) return true;
  if (result.step > 0) return false;
  // It was closed before: the same report is a repeat, a different one is refused.
  await engineDecisions(engine).markExecuted(id, proof, { actor });
  return true;
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
