import type { TaskStore } from "../src/store/tasks.ts";
import { createTaskList } from "../src/tasks/create-task-list.ts";

const LEASE_MS = 60_000;

export interface Churn {
  readonly workers: number;
  readonly total: number;
  /** How many a worker claims at once; then it completes them together. */
  readonly batch?: number;
}

/** Pending tasks, as fast as the store takes them. */
export async function fill(store: TaskStore, count: number): Promise<void> {
  const tasks = createTaskList({ store });
  const atOnce = store.direct === undefined ? 1 : 2_000;
  for (let done = 0; done < count; done += atOnce) {
    const some = Array.from({ length: Math.min(atOnce, count - done) }, (_, n) => ({
      subject: `Task ${done + n}`,
      description: "Look at the invoice and say what is wrong with it.",
    }));
    if (store.direct === undefined) await tasks.addAll(some);
    else await Promise.all(some.map((draft) => tasks.add(draft)));
  }
}

/** Workers that claim the next task under a lease and complete it, until so many are done. */
export async function churn(
  store: TaskStore,
  { workers, total, batch = 1 }: Churn,
): Promise<number> {
  const tasks = createTaskList({ store });
  let left = total;
  let done = 0;
  const work = async (claimer: string): Promise<void> => {
    while (left > 0) {
      const limit = Math.min(batch, left);
      left -= limit;
      const terms = { claimer, leaseMs: LEASE_MS };
      const claimed =
        batch === 1 ? [await tasks.claimNext(terms)] : await tasks.claimBatch({ ...terms, limit });
      await Promise.all(
        claimed.map(async (task) => {
          if (task?.fence === undefined) throw new Error("the list ran empty");
          await tasks.complete({ id: task.id, fence: task.fence, result: "Nothing is wrong." });
          done += 1;
        }),
      );
    }
  };
  await Promise.all(Array.from({ length: workers }, (_, n) => work(`worker-${n}`)));
  return done;
}
