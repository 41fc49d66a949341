import { setImmediate } from "node:timers/promises";
import { type Task, taskFromJson, taskToJson } from "../../src/model/task.ts";

import { checkSwap, missingTask, type TaskStore } from "../../src/store/tasks.ts";
import { runTaskCases } from "./task-stores.ts";

/**
 * What an author of a store writes: a remote one, for instance, that keeps JSON texts and answers a little later. That
 * the whole suite passes on it is what S4-02 and S4-70 promise, and the suite names them.
 */
function remoteTaskStore(): TaskStore {
  const rows = new Map<string, string>();
  const read = (text: string): Task => taskFromJson(JSON.parse(text));
  return {
    async get(id) {
      await setImmediate();
      const row = rows.get(id);
      if (row === undefined) throw missingTask(id);
      return read(row);
    },
    async compareAndSwap(task, expectedVersion) {
      const sent = JSON.stringify(taskToJson({ ...task, version: expectedVersion + 1 }));
      await setImmediate();
      const row = rows.get(task.id);
      checkSwap(row === undefined ? undefined : read(row), { task, expectedVersion });
      rows.set(task.id, sent);
      return read(sent);
    },
    async list() {
      await setImmediate();
      return [...rows.values()].map(read);
    },
    async close() {},
  };
}

runTaskCases("a store of four operations", async () => ({ store: remoteTaskStore() }));
