import { isSallyportError, SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import { TASK_LIMITS, type Task, type TaskId } from "../model/task.ts";
import { CALLER, missingTask, type TaskStore, type TaskSwap } from "../store/tasks.ts";
import { toIso } from "../util/clock.ts";
import type { Ids } from "../util/ids.ts";
import type { BatchDraft } from "./create-task-list.ts";
import { setBlockers } from "./rules.ts";

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

/** What one has to say about a task; the list adds id, status, time and version. */
export interface TaskDraft extends TaskLinks {
  /** 1 to 80 characters on one line. */
  readonly subject: string;
  readonly description?: string;
  /** Higher is sooner; 0 when left out. */
  readonly priority?: number;
  /** Only who has this role may claim it. */
  readonly role?: string;
  /** Tasks to be completed first: ids, and in `addAll` also keys of the same batch. */
  readonly blockedBy?: readonly TaskId[];
  /** Who adds it, for the trail; not a part of the task. */
  readonly by?: string;
}

/** What the task belongs to. */
export interface TaskLinks {
  readonly sessionId?: string;
  readonly decisionIds?: readonly string[];
  readonly delegationId?: string;
}

/** A pending task in its first version. Throws invalid_input, payload_too_large. */
function newTask(id: TaskId, draft: TaskDraft, now: number): Task {
  const { subject, description = "", priority = 0, role = "", blockedBy = [] } = draft;
  checkSubject(subject);
  checkProse("description", description);
  checkPriority(priority);
  if (role !== "") checkName("role", role);
  if (draft.by !== undefined) checkName("name", draft.by);
  checkNames("blocker", blockedBy, TASK_LIMITS.blockers);
  checkLinks(draft);
  return {
    id,
    subject,
    description,
    status: "pending",
    createdAt: toIso(now),
    version: 1,
    ...(priority === 0 ? {} : { priority }),
    ...(role === "" ? {} : { role }),
    ...(blockedBy.length === 0 ? {} : { blockedBy: [...new Set(blockedBy)] }),
    ...linksOf(draft),
  };
}

export function checkLinks({ sessionId, decisionIds = [], delegationId }: TaskLinks): void {
  if (sessionId !== undefined) checkName("session id", sessionId);
  if (delegationId !== undefined) checkName("delegation id", delegationId);
  checkNames("decision id", decisionIds, TASK_LIMITS.decisions);
}

export function linksOf({ sessionId, decisionIds = [], delegationId }: TaskLinks): TaskLinks {
  return {
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(decisionIds.length === 0 ? {} : { decisionIds: [...new Set(decisionIds)] }),
    ...(delegationId === undefined ? {} : { delegationId }),
  };
}

/** What the task list takes in. One place, so that all stores are handed the same. */

const LEASE_MS_MAX = 7 * 24 * 3_600_000;

/** A title: something to see, on one line. */
function checkSubject(subject: unknown): asserts subject is string {
  if (typeof subject !== "string" || subject.trim() === "") {
    throw refused("subject", "Give the task a title.");
  }
  const { length } = [...subject];
  if (length > TASK_LIMITS.subject) {
    const hint = `Shorten the subject to ${TASK_LIMITS.subject} characters; the rest belongs in the description.`;
    throw new SallyportError("invalid_input", { what: "subject", length, hint });
  }
  if (/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(subject)) {
    throw refused("subject", "A title is one line: remove line breaks and control characters.");
  }
}

/** Free text that is kept as it is. Half characters are refused, because no database could give them back. */
export function checkProse(
  what: string,
  text: unknown,
  most: number = TASK_LIMITS.prose,
): asserts text is string {
  if (typeof text !== "string") throw refused(what, `Give the ${what} as text.`);
  if (text.length > most) {
    const hint = `Keep it under ${most} characters: put the rest into a file and say where it is.`;
    throw new SallyportError("payload_too_large", { what, length: text.length, hint });
  }
  if (!text.isWellFormed()) throw refused(what, "Remove the half of a surrogate pair.");
}

export function checkReason(reason: unknown): asserts reason is string {
  checkProse("reason", reason, TASK_LIMITS.reason);
}

function checkPriority(priority: number): void {
  const { priority: most } = TASK_LIMITS;
  if (Number.isSafeInteger(priority) && Math.abs(priority) <= most) return;
  throw refused("priority", `Give a whole number between -${most} and ${most}; higher is sooner.`);
}

export function checkLease(leaseMs: number): void {
  if (Number.isSafeInteger(leaseMs) && leaseMs > 0 && leaseMs <= LEASE_MS_MAX) return;
  throw refused("lease", "Give whole milliseconds, more than zero and no more than a week.");
}

export function checkNames(what: string, names: readonly string[], most: number): void {
  if (names.length > most) {
    throw new SallyportError("payload_too_large", { what, length: names.length, most });
  }
  for (const name of names) checkName(what, name);
}

function refused(what: string, hint: string): SallyportError {
  return new SallyportError("invalid_input", { what, hint });
}

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

/** Blockers of the task that are not completed. One that does not exist blocks too: it may be on its way. */
export function openBlockers(
  { blockedBy = [] }: Task,
  byId: ReadonlyMap<TaskId, Task>,
): readonly TaskId[] {
  return blockedBy.filter((id) => byId.get(id)?.status !== "completed");
}

/** The same for one task, asking the store. Completed is final, so what was no obstacle now never becomes one. */
export async function openBlockersIn(
  store: TaskStore,
  { blockedBy = [] }: Task,
): Promise<readonly TaskId[]> {
  const open = await Promise.all(blockedBy.map(async (id) => !(await isCompleted(store, id))));
  return blockedBy.filter((_, index) => open[index]);
}

/** A circle of tasks that wait for each other, as the ids along it; undefined when there is none. */
export function findCycle(tasks: readonly Task[]): readonly TaskId[] | undefined {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const settled = new Set<TaskId>();
  for (const { id } of tasks) {
    const cycle = cycleFrom(id, byId, settled);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

function refuseCycle(tasks: readonly Task[]): void {
  const cycle = findCycle(tasks);
  if (cycle === undefined) return;
  const hint = "These tasks would wait for each other for ever.";
  throw new SallyportError("invalid_input", { what: "blocked_by", cycle, hint });
}

/** Walks with a list of its own instead of recursion: a chain of ten thousand tasks is legitimate. */
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
