import { isSallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import { TASK_LIMITS, type Task, type TaskId } from "../model/task.ts";
import { missingTask, type TaskStore, type TaskSwap } from "../store/tasks.ts";
import { findCycle, refuseCycle } from "./dependencies.ts";
import { setBlockers } from "./rules.ts";
import { checkNames } from "./task-checks.ts";

/** Sets what a pending task waits for. */
export async function blockTask(
  store: TaskStore,
  id: TaskId,
  blockedBy: readonly TaskId[],
  by: string,
): Promise<Task> {
  checkName("name", by);
  checkNames("blocker", blockedBy, TASK_LIMITS.blockers);
  if (store.transact === undefined) return blockByTrying(store, id, blockedBy, by);
  const [stored] = await store.transact((tasks) => [blockSwap(tasks, id, blockedBy, by)]);
  return stored as Task;
}

/**
 * With the four operations alone. A circle can be closed by two calls on two tasks at the same time, each harmless alone,
 * and a swap of one task cannot see that. So each looks again after it has written: at least the later one sees both and
 * takes its own back.
 */
async function blockByTrying(
  store: TaskStore,
  id: TaskId,
  blockedBy: readonly TaskId[],
  by: string,
): Promise<Task> {
  const before = new Map((await store.list()).map((task) => [task.id, task]));
  const { task, expectedVersion, cause } = blockSwap(before, id, blockedBy, by);
  const stored = await store.compareAndSwap(task, expectedVersion, cause);
  const after = await store.list();
  if (findCycle(after)?.includes(id)) {
    const restored = setBlockers(stored, before.get(id)?.blockedBy ?? []);
    await takeBack(store, { task: restored, expectedVersion: stored.version, cause });
    refuseCycle(after);
  }
  return stored;
}

function blockSwap(
  tasks: ReadonlyMap<TaskId, Task>,
  id: TaskId,
  blockedBy: readonly TaskId[],
  by: string,
): Required<TaskSwap> {
  const task = tasks.get(id);
  const missing = blockedBy.find((blocker) => !tasks.has(blocker));
  if (task === undefined || missing !== undefined) throw missingTask(missing ?? id);
  const next = setBlockers(task, blockedBy);
  refuseCycle([...new Map(tasks).set(id, next).values()]);
  const cause = { event: "task.blocked", actor: by } as const;
  return { task: next, expectedVersion: task.version, cause };
}

async function takeBack(store: TaskStore, swap: Required<TaskSwap>): Promise<void> {
  try {
    await store.compareAndSwap(swap.task, swap.expectedVersion, swap.cause);
  } catch (error) {
    // It was changed since; a circle that is still there is found by the watchdog.
    if (!isSallyportError(error, "concurrent_modification")) throw error;
  }
}
