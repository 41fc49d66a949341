import type { Task } from "../../model/task.ts";
import type { StoreCase } from "../../store/conformance/case.ts";
import { START } from "../../store/conformance/samples.ts";
import type { TaskStore } from "../../store/tasks.ts";
import { type ManualClock, manualClock } from "../../util/clock.ts";
import { createTaskList, type TaskList, type TaskListOptions } from "../create-task-list.ts";

/** What an author of a store hands in: a fresh, empty store for each case. */
export interface OpenTaskStore {
  readonly store: TaskStore;
  /** For stores with a clock of their own: the one it tells the time by, standing at `START`. */
  readonly clock?: ManualClock;
  /** A second handle on the same tasks, as another process would have. Without it the first one is used twice. */
  readonly again?: () => Promise<TaskStore>;
  /** Called after the case, when the store was closed. */
  readonly remove?: () => Promise<void>;
}

/** What a case works with. */
export interface TaskHarness {
  readonly store: TaskStore;
  /** Over that store and clock. */
  readonly tasks: TaskList;
  /** Stands at `START` until the case moves it. */
  readonly clock: ManualClock;
  /** Another task list, over this store or another one. */
  list(options?: Partial<TaskListOptions>): TaskList;
  again(): Promise<TaskStore>;
  close(): Promise<void>;
}

/** One promise of the contract. It throws an AssertionError when the promise is broken. */
export type TaskCase = Omit<StoreCase<TaskHarness>, "needs">;

export async function taskHarness(open: () => Promise<OpenTaskStore>): Promise<TaskHarness> {
  const { store, again, remove, clock = manualClock(START) } = await open();
  const handles = [store];
  const list = (options: Partial<TaskListOptions> = {}) =>
    createTaskList({ store, clock, ...options });
  return {
    store,
    clock,
    list,
    tasks: list(),
    async again() {
      if (again === undefined) return store;
      const handle = await again();
      handles.push(handle);
      return handle;
    },
    async close() {
      for (const handle of handles) await handle.close();
      await remove?.();
    },
  };
}

/** A task with every field, for stores that must give back all of them. */
export const FULL_TASK: Task = {
  id: "task-full",
  subject: "Prüfe die Anmeldung 登录",
  description: "First line\n\n  third line, indented",
  status: "claimed",
  claimer: "员工 4711",
  result: "a result",
  failureReason: "a reason",
  createdAt: "2026-11-15T06:00:00.000Z",
  claimedAt: "2026-11-15T06:00:01.234Z",
  completedAt: "2026-11-15T06:00:02.000Z",
  version: 1,
  priority: -3,
  role: "writer",
  blockedBy: ["task-a", "task-b"],
  leaseUntil: "2026-11-15T07:00:00.000Z",
  fence: 7,
  sessionId: "session-1",
  decisionIds: ["dec-1", "dec-2"],
  delegationId: "del-1",
  history: [
    { at: "2026-11-15T05:00:00.000Z", what: "failed", by: "bob", reason: "no\nluck", fence: 2 },
    { at: "2026-11-15T05:30:00.000Z", what: "reopened" },
  ],
};

/** A store in front of a store, whose readers wait for each other: all have read before the first one writes. */
export function readingTogether(store: TaskStore, readers: number): TaskStore {
  let waiting = 0;
  const { promise: all, resolve } = Promise.withResolvers<void>();
  return {
    ...plain(store),
    async get(id) {
      const task = await store.get(id);
      waiting += 1;
      if (waiting >= readers) resolve();
      await all;
      return task;
    },
  };
}

/** The four operations of a store and nothing else. */
export function plain(store: TaskStore): TaskStore {
  return {
    get: (id) => store.get(id),
    compareAndSwap: (task, version, cause) => store.compareAndSwap(task, version, cause),
    list: () => store.list(),
    close: () => store.close(),
  };
}
