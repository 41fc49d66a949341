import type { Task, TaskId } from "../model/task.ts";
import type { Clock } from "../util/clock.ts";
import { type Conditions, NOW, type Row, type Step } from "./engine.ts";
import { KnownClaims } from "./known-claims.ts";
import { LowWater } from "./low-water.ts";
import { Rarely } from "./rarely.ts";
import { NEVER, TASK_QUEUE, TASKS, taskOf } from "./task-rows.ts";
import type { StoredTask } from "./task-swaps.ts";
import type { ClaimTerms, DirectTasks, TaskSwap } from "./tasks.ts";
import type { TenantEngine } from "./tenant-engine.ts";

interface Parts {
  readonly engine: TenantEngine;
  readonly now: () => Promise<number>;
  readonly insert: (swaps: readonly TaskSwap[]) => Promise<readonly Task[]>;
  readonly stored: (id: TaskId) => Promise<StoredTask | undefined>;
  /** Measures how long searches take. */
  readonly stopwatch: Clock;
}

interface Claims {
  readonly direct: DirectTasks;
  /** To be told of every task that was written by a swap. */
  freed(task: Task): void;
}

/** What the engine does with tasks in one step. */
export function engineClaims({ engine, now, insert, stored, stopwatch }: Parts): Claims {
  const water = new LowWater();
  const overdue = new Rarely((limit: number) => findOverdue(limit), stopwatch);
  const known = new KnownClaims(engine);
  let asking: Promise<number> | undefined;

  async function take(terms: ClaimTerms, limit: number, mark: Conditions): Promise<readonly Row[]> {
    const { claimer } = terms;
    const step = takeStep(terms, limit, mark);
    const result = await engine.commit({
      steps: [step],
      events: [
        {
          type: "task.claimed",
          subject: { left: "id" },
          session: { left: "session_id" },
          actor: claimer,
          data: {},
          facts: { fence: { left: "fence" }, version: { left: "version" } },
          each: true,
        },
      ],
    });
    return result.committed ? result.rows : [];
  }

  /** The task behind a row that was just taken. */
  async function taskOfClaim(queue: Row): Promise<Task> {
    const row = await engine.get(TASKS, String(queue["id"]));
    if (row !== undefined && row["version"] === queue["facts_version"]) return taskOf(row, queue);
    // Somebody wrote to it in between. If our claim is still there, what they wrote is the truth.
    const again = await stored(String(queue["id"]));
    if (again !== undefined && again.queue?.["fence"] === queue["fence"]) return again.task;
    return taskOf({ ...row, status: "claimed" }, queue);
  }

  async function findOverdue(limit: number): Promise<readonly Task[]> {
    const where = { lease_until: { atMost: NOW } };
    const rows = await engine.find(TASK_QUEUE, { where, limit });
    const found = await Promise.all(rows.map((row) => stored(String(row["id"]))));
    // Only what is still as it was found: in between it may have been claimed anew, and that claim is live.
    return found.flatMap((one, index) =>
      one !== undefined && one.task.version === rows[index]?.["version"] ? [one.task] : [],
    );
  }

  return {
    freed(task) {
      known.forget(task.id);
      // Something older, or somebody who waited for this one, may be next now.
      if (task.version === 1) water.added(task.priority ?? 0);
      else if (task.status !== "claimed") water.forget();
    },
    direct: {
      now() {
        asking ??= now().finally(() => {
          asking = undefined;
        });
        return asking;
      },
      async insert(swaps) {
        const added = await insert(swaps);
        for (const { priority = 0 } of added) water.added(priority);
        return added;
      },
      async claim(terms, limit) {
        const key = JSON.stringify((terms.roles ?? []).toSorted());
        for (;;) {
          const began = stopwatch.now();
          const mark = water.conditions(key, began);
          const whole = Object.keys(mark).length === 0;
          const rows = await take(terms, limit, mark);
          const ended = stopwatch.now();
          water.learn(key, rows, { now: ended, tookMs: ended - began, whole });
          if (rows.length > 0) {
            const tasks = await Promise.all(rows.map(taskOfClaim));
            return tasks.map((task) => known.remember(task, terms.leaseMs));
          }
          if (whole) return [];
          water.forget();
        }
      },
      overdue: (limit, thorough) => overdue.do(limit, thorough),
      renew: (claim, leaseMs, actor) => known.renew(claim, leaseMs, actor),
      complete: (claim, result, actor) => known.complete(claim, result, actor),
    },
  };
}

function takeStep({ claimer, roles = [], leaseMs }: ClaimTerms, limit: number, mark: Conditions) {
  return {
    op: "take",
    table: TASK_QUEUE,
    where: {
      lane: "ready",
      role: roles.length === 0 ? "" : { oneOf: ["", ...roles] },
      ...mark,
    },
    order: [{ column: "priority", down: true }],
    limit,
    set: {
      lane: leaseMs === undefined ? "kept" : "leased",
      claimer,
      claimed_at: NOW,
      lease_until: leaseMs === undefined ? NEVER : { nowPlusMs: leaseMs },
      fence: { plus: 1 },
      version: { plus: 1 },
    },
  } as const satisfies Step;
}
