import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";
import type { Task, TaskId } from "../model/task.ts";
import type { ClaimRef, ClaimTerms, DirectTasks, TaskCause, TaskStore } from "../store/tasks.ts";
import { type Clock, fromIso, systemClock } from "../util/clock.ts";
import { errorText } from "../util/error-text.ts";
import { findCycle, openBlockers } from "./add-tasks.ts";
import {
  checkHold,
  claimObstacle,
  claimTask,
  expireTask,
  failTask,
  freed,
  isExpired,
} from "./rules.ts";

const ROUNDS = 100;

type Now = () => number | Promise<number>;

/** The best tasks this claimer can have, claimed, at most `limit`. Two never get the same. Empty when there is none. */
export async function claimBest(
  store: TaskStore,
  terms: ClaimTerms,
  limit: number,
  now: Now,
): Promise<readonly Task[]> {
  if (store.direct !== undefined) return claimDirectly(store, store.direct, terms, limit);
  if (store.transact === undefined) return claimByTrying(store, terms, limit, now);
  const at = await now();
  return store.transact((tasks) => {
    const best = claimables(tasks, terms, at).slice(0, limit);
    return best.map((task) => ({
      task: claimTask(task, terms, { open: [], now: at }),
      expectedVersion: task.version,
      cause: claimedBy(terms),
    }));
  });
}

/**
 * The store hands out what is pending. A lease that is over is first written down by the rules, which makes its task
 * pending like any other; so whoever held it is remembered.
 */
async function claimDirectly(
  store: TaskStore,
  direct: DirectTasks,
  terms: ClaimTerms,
  limit: number,
): Promise<readonly Task[]> {
  await putInOrder(store, await direct.overdue(ROUNDS, false));
  for (let round = 0; round < ROUNDS; round += 1) {
    const claimed = await direct.claim(terms, limit);
    if (claimed.length > 0) return claimed;
    const overdue = await direct.overdue(ROUNDS, true);
    if (overdue.length === 0) return [];
    await putInOrder(store, overdue);
  }
  throw outrun();
}

/**
 * With the four operations alone. Who loses one to somebody else goes on with the next best that it knows of, and reads
 * the list again when those are used up; so nobody goes away empty while something is left.
 */
async function claimByTrying(
  store: TaskStore,
  terms: ClaimTerms,
  limit: number,
  now: Now,
): Promise<readonly Task[]> {
  const claimed: Task[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const tasks = new Map((await store.list()).map((task) => [task.id, task]));
    const candidates = claimables(tasks, terms, await now());
    for (const task of candidates) {
      if (claimed.length === limit) return claimed;
      try {
        const next = claimTask(task, terms, { open: [], now: await now() });
        claimed.push(await store.compareAndSwap(next, task.version, claimedBy(terms)));
      } catch (error) {
        if (!isSallyportError(error, "concurrent_modification")) throw error;
      }
    }
    if (candidates.length === 0 || claimed.length > 0) return claimed;
  }
  throw outrun();
}

export function claimedBy({ claimer }: ClaimTerms): TaskCause {
  return { event: "task.claimed", actor: claimer };
}

/** The highest priority first, then in the order of the list, which is by age. */
function claimables(
  tasks: ReadonlyMap<TaskId, Task>,
  { roles = [] }: ClaimTerms,
  now: number,
): readonly Task[] {
  const isFree = (task: Task) =>
    claimObstacle(task, { roles, open: openBlockers(task, tasks), now }) === undefined;
  return [...tasks.values()].filter(isFree).toSorted((a, b) => urgencyOf(b) - urgencyOf(a));
}

function urgencyOf({ priority = 0 }: Task): number {
  return priority;
}

function outrun(): SallyportError {
  const hint = "Others were faster a hundred times in a row. Ask again.";
  return new SallyportError("store_busy", { hint });
}

/**
 * Asked before each call of a session that works under a claim: nothing to say while the claim is live, a hard denial once
 * its fence has moved or its lease is over, and also when nobody can tell. It spares the agent the work; what makes sure is
 * `claimHold`, which looks again in the transaction that starts the effect, where tasks and operations share a store.
 */
export async function checkClaim(
  store: Pick<TaskStore, "get" | "direct">,
  claim: ClaimRef,
  clock: Clock = systemClock,
): Promise<readonly Finding[]> {
  try {
    const task = await store.get(claim.id);
    checkHold(task, claim.fence, (await store.direct?.now()) ?? clock.now());
    return [];
  } catch (error) {
    return [denied(claim, reasonOf(error))];
  }
}

function reasonOf(error: unknown): string {
  if (isSallyportError(error, "claim_lost")) return "its lease ran out, or somebody else holds it";
  if (isSallyportError(error, "not_found")) return "there is no such task";
  return `nobody can tell whether you still hold it (${errorText(error)})`;
}

function denied({ id }: ClaimRef, why: string): Finding {
  const message = `Not executed: you work on task ${id}, and ${why}. Stop working on it and claim another task.`;
  return { severity: "hard-deny", policy: "task.claim", message };
}

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
async function putInOrder(
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
