import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Task, TaskId } from "../model/task.ts";
import { openBlockers } from "./dependencies.ts";
import { type ClaimTerms, claimObstacle, claimTask } from "./rules.ts";
import type { TaskCause, TaskStore } from "./task-store.ts";

const ROUNDS = 100;

/** The best task this claimer can have, claimed. Two never get the same. Undefined when there is none. */
export async function claimNext(
  store: TaskStore,
  terms: ClaimTerms,
  now: () => number,
): Promise<Task | undefined> {
  if (store.transact === undefined) return claimByTrying(store, terms, now);
  const [claimed] = await store.transact((tasks) => {
    const task = bestTask(tasks, terms, now());
    if (task === undefined) return [];
    const next = claimTask(task, terms, { open: [], now: now() });
    return [{ task: next, expectedVersion: task.version, cause: claimedBy(terms) }];
  });
  return claimed;
}

/**
 * With the four operations alone. Who loses one to somebody else goes on with the next best that it knows of, and reads
 * the list again when those are used up; so nobody goes away empty while something is left.
 */
async function claimByTrying(
  store: TaskStore,
  terms: ClaimTerms,
  now: () => number,
): Promise<Task | undefined> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const tasks = new Map((await store.list()).map((task) => [task.id, task]));
    const candidates = [...tasks.values()]
      .filter((task) => isClaimable(task, tasks, terms, now()))
      .toSorted((a, b) => urgencyOf(b) - urgencyOf(a));
    for (const task of candidates) {
      try {
        const next = claimTask(task, terms, { open: [], now: now() });
        return await store.compareAndSwap(next, task.version, claimedBy(terms));
      } catch (error) {
        if (!isSallyportError(error, "concurrent_modification")) throw error;
      }
    }
    if (candidates.length === 0) return undefined;
  }
  const hint = "Others were faster a hundred times in a row. Ask again.";
  throw new SallyportError("store_busy", { hint });
}

export function claimedBy({ claimer }: ClaimTerms): TaskCause {
  return { event: "task.claimed", actor: claimer };
}

/** The highest priority, then the first in the order of the list, which is by age. */
function bestTask(
  tasks: ReadonlyMap<TaskId, Task>,
  terms: ClaimTerms,
  now: number,
): Task | undefined {
  let best: Task | undefined;
  for (const task of tasks.values()) {
    if (best !== undefined && urgencyOf(task) <= urgencyOf(best)) continue;
    if (isClaimable(task, tasks, terms, now)) best = task;
  }
  return best;
}

function isClaimable(
  task: Task,
  tasks: ReadonlyMap<TaskId, Task>,
  { roles = [] }: ClaimTerms,
  now: number,
): boolean {
  return claimObstacle(task, { roles, open: openBlockers(task, tasks), now }) === undefined;
}

function urgencyOf({ priority = 0 }: Task): number {
  return priority;
}
