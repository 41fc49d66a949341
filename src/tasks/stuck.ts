import { isSallyportError } from "../model/errors.ts";
import type { Task } from "../model/task.ts";
import { fromIso } from "../util/clock.ts";
import { findCycle } from "./dependencies.ts";
import { expireTask, failTask, isExpired } from "./rules.ts";
import type { TaskStore } from "./task-store.ts";

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
  now: () => number,
): Promise<readonly Task[]> {
  const changed: Task[] = [];
  for (const task of await store.list()) {
    if (!isExpired(task, now())) continue;
    const swept = await writeExpiry(store, task, now(), giveUpAfter);
    if (swept !== undefined) changed.push(swept);
  }
  return changed;
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
  try {
    const event = next === expired ? "task.expired" : "task.failed";
    return await store.compareAndSwap(next, task.version, { event, actor: SWEEPER });
  } catch (error) {
    if (isSallyportError(error, "concurrent_modification")) return undefined;
    throw error;
  }
}

function expiriesOf({ history = [] }: Task): number {
  const since = history.findLastIndex(({ what }) => what === "reopened") + 1;
  return history.slice(since).filter(({ what }) => what === "expired").length;
}
