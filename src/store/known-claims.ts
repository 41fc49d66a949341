import type { Task, TaskId } from "../model/task.ts";
import { fromIso } from "../util/clock.ts";
import { encodeValue } from "../util/value-codec.ts";
import { type EventPlan, NOW, type Row, type Step } from "./engine.ts";
import { instantIn } from "./read-cell.ts";
import { TASK_QUEUE, TASKS, taskOf } from "./task-rows.ts";
import { LIVE } from "./task-swaps.ts";
import type { ClaimRef } from "./tasks.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** More claims than this are not held by one process at once; the oldest are then looked up again. */
const MOST = 10_000;

interface Known {
  readonly task: Task;
  readonly leaseMs: number | undefined;
}

/**
 * The claims that this process made, as it left them in the store. They can be renewed and completed without looking
 * first: what is remembered goes into the conditions of the write, so if it is not true any more, nothing is written.
 */
export class KnownClaims {
  readonly #engine: TenantEngine;
  readonly #known = new Map<TaskId, Known>();

  constructor(engine: TenantEngine) {
    this.#engine = engine;
  }

  /** Gives back a copy: what its receiver does to it is not what we remember. */
  remember(task: Task, leaseMs: number | undefined): Task {
    this.#known.delete(task.id);
    this.#known.set(task.id, { task, leaseMs });
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST && oldest !== undefined) this.#known.delete(oldest);
    return structuredClone(task);
  }

  forget(id: TaskId): void {
    this.#known.delete(id);
  }

  async renew(claim: ClaimRef, leaseMs: number, actor?: string): Promise<Task | undefined> {
    const last = this.#recall(claim);
    // A shorter lease than the last must not shorten what was promised: that takes a look first.
    if (last?.leaseMs === undefined || leaseMs < last.leaseMs) return undefined;
    const { id, fence } = claim;
    const where = { version: last.task.version, fence, lane: "leased", ...LIVE };
    const set = { lease_until: { nowPlusMs: leaseMs }, version: { plus: 1 } };
    const result = await this.#engine.commit({
      steps: [{ op: "update", table: TASK_QUEUE, id, where, set }],
      events: [eventOf("task.renewed", last.task, actor)],
    });
    this.forget(id);
    const row = result.committed ? result.rows[0] : undefined;
    return row === undefined ? undefined : this.remember(renewed(last.task, row), leaseMs);
  }

  async complete(claim: ClaimRef, result: string, actor?: string): Promise<Task | undefined> {
    const last = this.#recall(claim);
    // Who waits, or is waited for, has more rows to change.
    if (last === undefined || last.task.blockedBy !== undefined) return undefined;
    const { id, fence } = claim;
    const where = { version: last.task.version, fence, dependents: 0, ...LIVE };
    const written = await this.#engine.commit({
      steps: [{ op: "delete", table: TASK_QUEUE, id, where }, completion(last.task, result)],
      events: [eventOf("task.completed", last.task, actor)],
    });
    this.forget(id);
    const row = written.committed ? written.rows[1] : undefined;
    return row === undefined ? undefined : taskOf(row, undefined);
  }

  #recall({ id, fence }: ClaimRef): Known | undefined {
    const found = this.#known.get(id);
    return found?.task.fence === fence ? found : undefined;
  }
}

function completion(task: Task, result: string): Step {
  const { id, claimer = null, claimedAt, fence = null, version } = task;
  const set = {
    status: "completed",
    claimer,
    claimed_at: claimedAt === undefined ? null : fromIso(claimedAt),
    completed_at: NOW,
    result: encodeValue(result),
    fence,
    version: version + 1,
  };
  return { op: "update", table: TASKS, id, where: {}, set };
}

function renewed(task: Task, row: Row): Task {
  const leaseUntil = instantIn(row, "lease_until");
  return { ...task, leaseUntil, version: Number(row["version"]) };
}

function eventOf(
  type: "task.renewed" | "task.completed",
  { id, version, fence = 0, claimer = "", sessionId = "" }: Task,
  actor = claimer,
): EventPlan {
  return { type, subject: id, session: sessionId, actor, data: { version: version + 1, fence } };
}
