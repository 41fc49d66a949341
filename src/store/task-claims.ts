import { TASK_QUEUE, TASKS, type Task, type TaskId } from "../model/task.ts";
import { type Clock, fromIso } from "../util/clock.ts";
import { encodeValue } from "../util/value-codec.ts";
import { type Conditions, type EventPlan, NOW, type Row, type Step } from "./engine.ts";
import type { StoredTask } from "./engine-tasks.ts";
import {
  type ClaimRef,
  type ClaimTerms,
  type DirectTasks,
  NEVER,
  type TaskSwap,
  taskOf,
} from "./tasks.ts";
import { instantIn, type TenantEngine } from "./tenant-engine.ts";

/** Still live, by the store's clock at the moment of writing. */
export const LIVE = { lease_until: { atLeast: { nowPlusMs: 1 } } } as const satisfies Conditions;

/** Over, by the same clock. */
export const OVER = { lease_until: { atMost: NOW } } as const satisfies Conditions;

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
  /** Called for every task that a swap has written. */
  freed(task: Task): void;
}

/** What the engine does with tasks in one step. */
export function engineClaims({ engine, now, insert, stored, stopwatch }: Parts): Claims {
  const water = new LowWater();
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
    // Another process wrote to it meanwhile. If our claim is still there, the stored row is correct.
    const again = await stored(String(queue["id"]));
    if (again !== undefined && again.queue?.["fence"] === queue["fence"]) return again.task;
    return taskOf({ ...row, status: "claimed" }, queue);
  }

  async function findOverdue(limit: number): Promise<readonly Task[]> {
    const rows = await engine.find(TASK_QUEUE, { where: OVER, limit });
    const found = await Promise.all(rows.map((row) => stored(String(row["id"]))));
    // Only tasks that are unchanged since the read: one may have been claimed again meanwhile, and that claim is live.
    return found.flatMap((one, index) =>
      one !== undefined && one.task.version === rows[index]?.["version"] ? [one.task] : [],
    );
  }

  return {
    freed(task) {
      known.forget(task.id);
      // An older task, or one that waited for this one, may be next now.
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
      overdue: findOverdue,
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

/** The most claims that a process remembers; older ones are looked up again. */
const MOST = 10_000;

interface Known {
  readonly task: Task;
  readonly leaseMs: number | undefined;
}

/**
 * The claims that this process made, as they are in the store. They can be renewed and completed without a read: the
 * remembered values are conditions of the write, so if they are outdated, nothing is written.
 */
class KnownClaims {
  readonly #engine: TenantEngine;
  readonly #known = new Map<TaskId, Known>();

  constructor(engine: TenantEngine) {
    this.#engine = engine;
  }

  /** Returns a copy, so that the receiver cannot change what is remembered. */
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
    // A shorter lease must not shorten the one that was granted, so it needs a read first.
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
    // A task that waits for others, or that others wait for, needs more than one row changed.
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

const MAX_KEYS = 100;

interface Place {
  readonly priority: number;
  readonly ord: number;
}

/** What is known about the searches for one set of roles. */
interface Searches {
  /** How many searches in a row were slow. One may be chance. */
  slow: number;
  mark: Place | undefined;
  /** Until then a search begins at the mark. */
  until: number;
}

/**
 * Where the search for the next task begins: at the start of the queue, while that is fast. While an old snapshot is open,
 * PostgreSQL cannot remove the dead rows of finished tasks, and a search from the start has to skip all of them. Then the
 * search begins where the last one ended, and at the start only occasionally and whenever it finds nothing. Tasks that
 * another process frees meanwhile are found a little later; none is lost.
 */
export class LowWater {
  readonly #searches = new Map<string, Searches>();

  /** Empty: look from the start. */
  conditions(key: string, now: number): Conditions {
    const known = this.#searches.get(key);
    if (known?.mark === undefined) return {};
    const { priority, ord } = known.mark;
    if (now < known.until) return { priority, ord: { atLeast: ord } };
    // This search begins at the start; concurrent ones need not.
    known.until = now + SLOW_MS * PAUSE_PER_LOOK;
    return {};
  }

  /** What a search found: the rows best first, how long it took, and whether it began at the start. */
  learn(key: string, rows: readonly Row[], { now, tookMs, whole }: Search): void {
    const known = this.#of(key);
    const last = rows.at(-1);
    const found = last && { priority: Number(last["priority"]), ord: Number(last["ord"]) };
    if (whole) {
      known.slow = tookMs < SLOW_MS ? 0 : known.slow + 1;
      known.mark = known.slow >= SLOW_STREAK ? found : undefined;
      known.until = now + PAUSE_PER_LOOK * tookMs;
    } else if (found !== undefined && known.mark !== undefined && isBefore(known.mark, found)) {
      known.mark = found;
    }
  }

  /** A new task comes last among its equals, so only marks below it are wrong now. */
  added(priority: number): void {
    for (const known of this.#searches.values()) {
      if (known.mark !== undefined && known.mark.priority < priority) known.mark = undefined;
    }
  }

  forget(): void {
    for (const known of this.#searches.values()) known.mark = undefined;
  }

  #of(key: string): Searches {
    const known = this.#searches.get(key);
    if (known !== undefined) return known;
    if (this.#searches.size >= MAX_KEYS) this.#searches.clear();
    const fresh: Searches = { slow: 0, mark: undefined, until: 0 };
    this.#searches.set(key, fresh);
    return fresh;
  }
}

/** With its share of a group commit an undisturbed search takes 2 to 4 ms; at 20 the walk over dead rows went unnoticed for too long. */
const SLOW_MS = 6;
const SLOW_STREAK = 8;

export interface Search {
  readonly now: number;
  readonly tookMs: number;
  readonly whole: boolean;
}

function isBefore(a: Place, b: Place): boolean {
  return a.priority === b.priority ? a.ord < b.ord : a.priority > b.priority;
}

/** While searching is slow, it may take this share of the time: one tenth. */
const PAUSE_PER_LOOK = 10;
