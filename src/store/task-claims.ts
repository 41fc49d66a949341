import { TASK_QUEUE, TASKS, type Task, type TaskId } from "../model/task.ts";
import { type Clock, fromIso, stopwatch as realStopwatch } from "../util/clock.ts";
import { encodeValue } from "../util/value-codec.ts";
import { type Conditions, type EventPlan, NOW, type Row, type Step } from "./engine.ts";
import { LIVE, type StoredTask } from "./engine-tasks.ts";
import { instantIn } from "./readable.ts";
import {
  type ClaimRef,
  type ClaimTerms,
  type DirectTasks,
  NEVER,
  type TaskSwap,
  taskOf,
} from "./tasks.ts";
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
class KnownClaims {
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

const MAX_KEYS = 100;

interface Place {
  readonly priority: number;
  readonly ord: number;
}

/** What is known of the searches for one set of roles. */
interface Searches {
  readonly streak: SlowStreak;
  mark: Place | undefined;
  /** Until then a search begins at the mark. */
  until: number;
}

/**
 * Where the search for the next task begins. From the start, as long as that is quick. But while somebody holds an old
 * snapshot open, a database cannot forget the rows of finished tasks, and a search from the start walks over all of them
 * again each time: then it begins where the last one ended, and looks from the start only now and then, and whenever it
 * finds nothing. What is freed in between by another process is found a little later, and nothing is lost.
 */
export class LowWater {
  readonly #searches = new Map<string, Searches>();

  /** Empty: look from the start. */
  conditions(key: string, now: number): Conditions {
    const known = this.#searches.get(key);
    if (known?.mark === undefined) return {};
    const { priority, ord } = known.mark;
    if (now < known.until) return { priority, ord: { atLeast: ord } };
    // This one looks from the start; those who ask meanwhile need not.
    known.until = now + SLOW_MS * PAUSE_PER_LOOK;
    return {};
  }

  /** What a search found: the rows best first, how long it took, and whether it began at the start. */
  learn(key: string, rows: readonly Row[], { now, tookMs, whole }: Search): void {
    const known = this.#of(key);
    const last = rows.at(-1);
    const found = last && { priority: Number(last["priority"]), ord: Number(last["ord"]) };
    if (whole) {
      known.streak.took(tookMs);
      known.mark = known.streak.isSlow ? found : undefined;
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
    const streak = new SlowStreak({ slowMs: SLOW_MS, length: 8 });
    const fresh: Searches = { streak, mark: undefined, until: 0 };
    this.#searches.set(key, fresh);
    return fresh;
  }
}

/** With its share of a group commit an undisturbed search takes 2 to 4 ms; at 20 the walk over dead rows went unnoticed for too long. */
const SLOW_MS = 6;

export interface Search {
  readonly now: number;
  readonly tookMs: number;
  readonly whole: boolean;
}

function isBefore(a: Place, b: Place): boolean {
  return a.priority === b.priority ? a.ord < b.ord : a.priority > b.priority;
}

/**
 * A look that many ask for at the same time: whoever comes while one is under way shares the next one, which begins after
 * they asked. If looking is slow for good, it is done only now and then, unless somebody wants to be sure.
 */
export class Rarely<Found> {
  readonly #look: (limit: number) => Promise<readonly Found[]>;
  readonly #stopwatch: Clock;
  readonly #streak = new SlowStreak({ slowMs: 5, length: 16 });
  #running: Promise<readonly Found[]> | undefined;
  #next: Promise<readonly Found[]> | undefined;
  #notBefore = 0;

  constructor(
    look: (limit: number) => Promise<readonly Found[]>,
    stopwatch: Clock = realStopwatch,
  ) {
    this.#look = look;
    this.#stopwatch = stopwatch;
  }

  async do(limit: number, thorough: boolean): Promise<readonly Found[]> {
    if (!thorough && this.#stopwatch.now() < this.#notBefore) return [];
    if (this.#running === undefined) return this.#start(limit);
    this.#next ??= this.#running
      .catch(() => [])
      .then(() => {
        this.#next = undefined;
        return this.#start(limit);
      });
    return this.#next;
  }

  #start(limit: number): Promise<readonly Found[]> {
    const began = this.#stopwatch.now();
    this.#running = this.#look(limit).finally(() => {
      this.#running = undefined;
      const ended = this.#stopwatch.now();
      this.#streak.took(ended - began);
      this.#notBefore = this.#streak.isSlow ? ended + PAUSE_PER_LOOK * (ended - began) : 0;
    });
    return this.#running;
  }
}

/**
 * Tells whether looking has become slow for good. One slow look may be chance; so many in a row mean that there is a lot to
 * walk over, or that the machine cannot follow, and then looking less often is worth what is noticed later.
 */
class SlowStreak {
  readonly #slowMs: number;
  readonly #length: number;
  #count = 0;

  constructor({ slowMs, length }: { slowMs: number; length: number }) {
    this.#slowMs = slowMs;
    this.#length = length;
  }

  took(ms: number): void {
    this.#count = ms < this.#slowMs ? 0 : this.#count + 1;
  }

  get isSlow(): boolean {
    return this.#count >= this.#length;
  }
}

/** While looking is slow, this much of the time goes into it: one part of ten. */
const PAUSE_PER_LOOK = 10;
