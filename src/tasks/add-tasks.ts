import { SallyportError } from "../model/errors.ts";
import { TASK_LIMITS, type Task, type TaskId } from "../model/task.ts";
import { CALLER, type TaskStore, type TaskSwap } from "../store/tasks.ts";
import type { Ids } from "../util/ids.ts";
import { refuseCycle } from "./dependencies.ts";
import { newTask } from "./new-task.ts";
import type { BatchDraft } from "./task-list.ts";

interface Parts {
  readonly store: TaskStore;
  readonly ids: Ids;
  readonly now: () => Promise<number>;
}

/** Everything is checked before anything is written. */
export async function addTasks(
  { store, ids, now }: Parts,
  drafts: readonly BatchDraft[],
): Promise<readonly Task[]> {
  if (drafts.length > TASK_LIMITS.batch) {
    const hint = `Add at most ${TASK_LIMITS.batch} tasks at once.`;
    throw new SallyportError("payload_too_large", { what: "batch", length: drafts.length, hint });
  }
  const named = drafts.map((draft) => ({ id: ids.next(), draft }));
  const byKey = keysOf(named);
  const at = await now();
  const tasks = named.map(({ id, draft }) => {
    const blockedBy = draft.blockedBy?.map((blocker) => byKey.get(blocker) ?? blocker) ?? [];
    return newTask(id, { ...draft, blockedBy }, at);
  });
  refuseCycle(tasks);
  const own = new Set(tasks.map(({ id }) => id));
  const others = new Set(
    tasks.flatMap(({ blockedBy = [] }) => blockedBy).filter((id) => !own.has(id)),
  );
  await Promise.all([...others].map((id) => store.get(id)));
  return insertAll(
    store,
    named.map(({ draft: { by = CALLER } }, index): TaskSwap => {
      const cause = { event: "task.added", actor: by } as const;
      return { task: tasks[index] as Task, expectedVersion: 0, cause };
    }),
  );
}

async function insertAll(store: TaskStore, swaps: readonly TaskSwap[]): Promise<readonly Task[]> {
  if (store.direct !== undefined) return store.direct.insert(swaps);
  if (swaps.length > 1 && store.transact !== undefined) return store.transact(() => swaps);
  // In order, so that the list shows them in order. Who waits for one that is not there yet cannot be claimed yet.
  const added: Task[] = [];
  for (const { task, cause } of swaps) added.push(await store.compareAndSwap(task, 0, cause));
  return added;
}

function keysOf(
  named: readonly { readonly id: TaskId; readonly draft: BatchDraft }[],
): ReadonlyMap<string, TaskId> {
  const byKey = new Map<string, TaskId>();
  for (const { id, draft } of named) {
    if (draft.key === undefined) continue;
    if (byKey.has(draft.key)) {
      const hint = "Give each task of the batch a key of its own.";
      throw new SallyportError("invalid_input", { what: "key", hint });
    }
    byKey.set(draft.key, id);
  }
  return byKey;
}
