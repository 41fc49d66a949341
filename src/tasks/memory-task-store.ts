import type { Task, TaskId } from "../model/task.ts";
import { cleanTask } from "./task-codec.ts";
import { checkSwap, missingTask, type TaskStore, type TaskSwap } from "./task-store.ts";

/** For one process, with nothing outside of it: tests, demos, and a list that may die with its program. */
export function memoryTaskStore(): TaskStore {
  // A map keeps the order of insertion, which is the order of age.
  const tasks = new Map<TaskId, Task>();

  /** Synchronous from the first look to the last write, so nothing can come between. */
  function swapAll(swaps: readonly TaskSwap[]): readonly Task[] {
    const next = new Map<TaskId, Task>();
    for (const { task, expectedVersion } of swaps) {
      const clean = cleanTask(task);
      checkSwap(next.get(clean.id) ?? tasks.get(clean.id), { task: clean, expectedVersion });
      next.set(clean.id, { ...clean, version: expectedVersion + 1 });
    }
    for (const [id, task] of next) tasks.set(id, task);
    return swaps.map(({ task }) => copyOf(task.id));
  }

  function copyOf(id: TaskId): Task {
    const task = tasks.get(id);
    if (task === undefined) throw missingTask(id);
    return cleanTask(task);
  }

  return {
    get: async (id) => copyOf(id),
    async compareAndSwap(task, expectedVersion) {
      swapAll([{ task, expectedVersion }]);
      return copyOf(task.id);
    },
    list: async () => [...tasks.keys()].map(copyOf),
    swapAll: async (swaps) => swapAll(swaps),
    async close() {},
  };
}
