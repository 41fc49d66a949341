import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Task } from "../model/task.ts";
import { openBlockers } from "./dependencies.ts";
import { type ClaimTerms, claimObstacle, claimTask } from "./rules.ts";
import type { TaskStore } from "./task-store.ts";

const ROUNDS = 100;

/**
 * The best task this claimer can have, claimed. Who loses one to somebody else goes on with the next best that it knows
 * of, and reads the list again when those are used up; so two never get the same, and nobody goes away empty while
 * something is left. Undefined when nothing is.
 */
export async function claimNext(
  store: TaskStore,
  terms: ClaimTerms,
  now: () => number,
): Promise<Task | undefined> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const candidates = claimableTasks(await store.list(), terms, now());
    for (const task of candidates) {
      try {
        const next = claimTask(task, terms, { open: [], now: now() });
        return await store.compareAndSwap(next, task.version);
      } catch (error) {
        if (!isSallyportError(error, "concurrent_modification")) throw error;
      }
    }
    if (candidates.length === 0) return undefined;
  }
  const hint = "Others were faster a hundred times in a row. Ask again.";
  throw new SallyportError("store_busy", { hint });
}

/** All that this claimer could have, best first: the higher priority, then the order of the list, which is by age. */
export function claimableTasks(
  tasks: readonly Task[],
  { roles = [] }: Pick<ClaimTerms, "roles">,
  now: number,
): readonly Task[] {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  return tasks
    .filter((task) => {
      const open = openBlockers(task, byId);
      return claimObstacle(task, { roles, open, now }) === undefined;
    })
    .toSorted((a, b) => (b.priority ?? 0) - (a.priority ?? 0));
}
