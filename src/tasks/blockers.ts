import { isSallyportError } from "../model/errors.ts";
import type { Task, TaskId } from "../model/task.ts";
import type { TaskStore } from "../store/tasks.ts";

// Tasks that wait for other tasks.

/** Blockers of the task that are not completed. A missing one blocks too: it may still be added. */
export function openBlockers(
  { blockedBy = [] }: Task,
  byId: ReadonlyMap<TaskId, Task>,
): readonly TaskId[] {
  return blockedBy.filter((id) => byId.get(id)?.status !== "completed");
}

/** The same for one task, from the store. Completed is final, so the answer cannot become wrong. */
export async function openBlockersIn(
  store: TaskStore,
  { blockedBy = [] }: Task,
): Promise<readonly TaskId[]> {
  const open = await Promise.all(blockedBy.map(async (id) => !(await isCompleted(store, id))));
  return blockedBy.filter((_, index) => open[index]);
}

/** A cycle of tasks that block each other, as the ids along it; undefined when there is none. */
export function findCycle(tasks: readonly Task[]): readonly TaskId[] | undefined {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const settled = new Set<TaskId>();
  for (const { id } of tasks) {
    const cycle = cycleFrom(id, byId, settled);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

/** Iterative, because a chain of ten thousand tasks is legitimate. */
function cycleFrom(
  start: TaskId,
  byId: ReadonlyMap<TaskId, Task>,
  settled: Set<TaskId>,
): readonly TaskId[] | undefined {
  const path: { id: TaskId; rest: TaskId[] }[] = [];
  const onPath = new Set<TaskId>();
  const enter = (id: TaskId) => {
    path.push({ id, rest: [...(byId.get(id)?.blockedBy ?? [])] });
    onPath.add(id);
  };
  if (!settled.has(start)) enter(start);
  for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
    const id = last.rest.pop();
    if (id === undefined) {
      settled.add(last.id);
      onPath.delete(last.id);
      path.pop();
    } else if (onPath.has(id)) {
      const ids = path.map((step) => step.id);
      return [...ids.slice(ids.indexOf(id)), id];
    } else if (!settled.has(id)) enter(id);
  }
  return undefined;
}

async function isCompleted(store: TaskStore, id: TaskId): Promise<boolean> {
  try {
    return (await store.get(id)).status === "completed";
  } catch (error) {
    if (isSallyportError(error, "not_found")) return false;
    throw error;
  }
}
