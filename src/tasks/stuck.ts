import { isSallyportError } from "../model/errors.ts";
import type { Task } from "../model/task.ts";
import type { TaskStore } from "../store/tasks.ts";
import { fromIso } from "../util/clock.ts";
import { findCycle } from "./dependencies.ts";
import { expireTask, failTask, isExpired } from "./rules.ts";
import { freed } from "./task-history.ts";

/** A task that will not move by itself, or has not for long. */
export interface Stuck {
  readonly task: Task;
  readonly why:
    | "lease_over"
    | "claimed_long"
    | "blocked_by_failed"
    | "blocked_by_missing"
    | "blocked_in_a_circle";
}

export interface StuckQuery {
  /** A claim at least this old is suspicious, whether its lease is renewed or not. */
  readonly claimedForMs: number;
}

export interface SweepOptions {
  /** Fails a task whose lease ran out this often since it was last re-opened: it probably kills its workers. */
  readonly giveUpAfter?: number;
}

/** Leases run out by themselves; somebody only has to write it down. */
const SWEEPER = "watchdog";

export function findStuck(
  tasks: readonly Task[],
  { claimedForMs }: StuckQuery,
  now: number,
): readonly Stuck[] {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const circle = new Set(findCycle(tasks.filter(({ status }) => status === "pending")));
  const why = (task: Task): Stuck["why"] | undefined => {
    if (isExpired(task, now)) return "lease_over";
    if (task.status === "claimed") {
      const since = task.claimedAt === undefined ? 0 : fromIso(task.claimedAt);
      return now - since >= claimedForMs ? "claimed_long" : undefined;
    }
    if (task.status !== "pending") return undefined;
    if (circle.has(task.id)) return "blocked_in_a_circle";
    const blockers = (task.blockedBy ?? []).map((id) => byId.get(id));
    if (blockers.some((blocker) => blocker === undefined)) return "blocked_by_missing";
    return blockers.some((blocker) => blocker?.status === "failed")
      ? "blocked_by_failed"
      : undefined;
  };
  return tasks.flatMap((task) => {
    const reason = why(task);
    return reason === undefined ? [] : [{ task, why: reason }];
  });
}

export async function sweep(
  store: TaskStore,
  { giveUpAfter = Number.POSITIVE_INFINITY }: SweepOptions,
  now: () => Promise<number>,
): Promise<readonly Task[]> {
  const { direct } = store;
  if (direct === undefined) return putInOrder(store, await store.list(), await now(), giveUpAfter);
  const changed: Task[] = [];
  for (;;) {
    const overdue = await direct.overdue(OVERDUE_PAGE, true);
    if (overdue.length === 0) return changed;
    changed.push(...(await putInOrder(store, overdue, await now(), giveUpAfter)));
  }
}
const OVERDUE_PAGE = 1_000;

/**
 * Writes down the leases that are over, and tidies up what somebody made pending by hand. Without a time the store has
 * judged already. Answers with the tasks whose lease it ended.
 */
export async function putInOrder(
  store: TaskStore,
  tasks: readonly Task[],
  now?: number,
  giveUpAfter?: number,
): Promise<readonly Task[]> {
  const changed: Task[] = [];
  for (const task of tasks) {
    const over = task.leaseUntil === undefined ? 0 : fromIso(task.leaseUntil);
    const at = store.direct === undefined ? (now ?? 0) : Math.max(now ?? 0, over);
    if (isExpired(task, at)) {
      const swept = await writeExpiry(store, task, at, giveUpAfter);
      if (swept !== undefined) changed.push(swept);
    } else if (store.direct !== undefined && task.status === "pending") {
      await tidyUp(store, task, at);
    }
  }
  return changed;
}

async function tidyUp(store: TaskStore, task: Task, now: number): Promise<void> {
  const cause = { event: "task.changed", actor: SWEEPER } as const;
  await unlessOutrun(() => store.compareAndSwap(freed(task, now), task.version, cause));
}

/** Undefined when somebody else wrote first, who has then seen what we saw or something newer. */
export async function writeExpiry(
  store: TaskStore,
  task: Task,
  now: number,
  giveUpAfter = Number.POSITIVE_INFINITY,
): Promise<Task | undefined> {
  const expired = expireTask(task, now);
  const times = expiriesOf(expired);
  const reason = `Its lease ran out ${times} times.`;
  const next = times < giveUpAfter ? expired : failTask(expired, { fence: "any", reason }, now);
  const event = next === expired ? "task.expired" : "task.failed";
  return unlessOutrun(() => store.compareAndSwap(next, task.version, { event, actor: SWEEPER }));
}

async function unlessOutrun(swap: () => Promise<Task>): Promise<Task | undefined> {
  try {
    return await swap();
  } catch (error) {
    if (isSallyportError(error, "concurrent_modification")) return undefined;
    throw error;
  }
}

function expiriesOf({ history = [] }: Task): number {
  const since = history.findLastIndex(({ what }) => what === "reopened") + 1;
  return history.slice(since).filter(({ what }) => what === "expired").length;
}
