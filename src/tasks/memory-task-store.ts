import { cleanTask, type Task, type TaskId } from "../model/task.ts";

import { checkSwap, type Decide, missingTask, pageFrom, type TaskStore } from "../store/tasks.ts";

/** For one process, with nothing outside of it: tests, demos, and a list that may die with its program. */
export function memoryTaskStore(): TaskStore {
  // A map keeps the order of insertion, which is the order of age.
  const tasks = new Map<TaskId, Task>();

  /** Synchronous from the first look to the last write, so nothing can come between. */
  function transact(decide: Decide): readonly Task[] {
    const written = new Map<TaskId, Task>();
    for (const { task, expectedVersion } of decide(tasks)) {
      const clean = cleanTask(task);
      checkSwap(written.get(clean.id) ?? tasks.get(clean.id), { task: clean, expectedVersion });
      written.set(clean.id, { ...clean, version: expectedVersion + 1 });
    }
    for (const [id, task] of written) tasks.set(id, task);
    return [...written.values()].map(cleanTask);
  }

  return {
    async get(id) {
      const task = tasks.get(id);
      if (task === undefined) throw missingTask(id);
      return cleanTask(task);
    },
    async compareAndSwap(task, expectedVersion) {
      const [stored] = transact(() => [{ task, expectedVersion }]);
      return stored as Task;
    },
    list: async () => [...tasks.values()].map(cleanTask),
    async page(query) {
      const page = pageFrom([...tasks.values()], query);
      return { ...page, tasks: page.tasks.map(cleanTask) };
    },
    transact: async (decide) => transact(decide),
    async close() {},
  };
}
