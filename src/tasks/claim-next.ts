import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Task, TaskId } from "../model/task.ts";
import type { ClaimTerms, DirectTasks, TaskCause, TaskStore } from "../store/tasks.ts";
import { openBlockers } from "./dependencies.ts";
import { claimObstacle, claimTask } from "./rules.ts";
import { putInOrder } from "./stuck.ts";

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
