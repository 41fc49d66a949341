import { isSallyportError } from "../model/errors.ts";
import { TASK_LIMITS, type Task, type TaskId } from "../model/task.ts";
import { findCycle, refuseCycle } from "./dependencies.ts";
import { setBlockers } from "./rules.ts";
import { checkNames } from "./task-checks.ts";
import { missingTask, type TaskStore } from "./task-store.ts";

/**
 * Sets what a pending task waits for. A circle can be closed by two calls on two tasks at the same time, each harmless
 * alone, and a swap of one task cannot see that. So each looks again after it has written: at least the later one sees
 * both and takes its own back.
 */
export async function blockTask(
  store: TaskStore,
  id: TaskId,
  blockedBy: readonly TaskId[],
): Promise<Task> {
  checkNames("blocker", blockedBy, TASK_LIMITS.blockers);
  const tasks = await store.list();
  const task = tasks.find((one) => one.id === id);
  if (task === undefined) throw missingTask(id);
  const missing = blockedBy.find((blocker) => !tasks.some((one) => one.id === blocker));
  if (missing !== undefined) throw missingTask(missing);
  const next = setBlockers(task, blockedBy);
  refuseCycle(tasks.map((one) => (one.id === id ? next : one)));

  const stored = await store.compareAndSwap(next, task.version);
  const after = await store.list();
  if (findCycle(after)?.includes(id)) {
    await takeBack(store, stored, task.blockedBy ?? []);
    refuseCycle(after);
  }
  return stored;
}

async function takeBack(store: TaskStore, stored: Task, before: readonly TaskId[]): Promise<void> {
  try {
    await store.compareAndSwap(setBlockers(stored, before), stored.version);
  } catch (error) {
    // It was changed since; a circle that is still there is found by the watchdog.
    if (!isSallyportError(error, "concurrent_modification")) throw error;
  }
}
