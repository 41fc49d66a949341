import { isSallyportError, SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import { TASK_LIMITS, type Task, type TaskId } from "../model/task.ts";
import { CALLER, missingTask, type TaskStore, type TaskSwap } from "../store/tasks.ts";
import { toIso } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { Ids } from "../util/ids.ts";
import { findCycle } from "./blockers.ts";
import type { BatchDraft } from "./create-task-list.ts";
import { checkNames, setBlockers } from "./rules.ts";

interface Parts {
  readonly store: TaskStore;
  readonly ids: Ids;
  readonly now: () => Promise<number>;
}

/** Checks everything before it writes anything. */
export async function addTasks(
  { store, ids, now }: Parts,
  drafts: readonly BatchDraft[],
): Promise<readonly Task[]> {
  if (drafts.length > TASK_LIMITS.batch) {
    const hint = `Add at most ${TASK_LIMITS.batch} tasks in one call.`;
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
  // In order, so that the list has them in order. A task whose blocker is not stored yet cannot be claimed.
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
      const hint = "Give each task of the batch its own key.";
      throw new SallyportError("invalid_input", { what: "key", hint });
    }
    byKey.set(draft.key, id);
  }
  return byKey;
}

/** A new task; the list adds id, status, time and version. */
export interface TaskDraft extends TaskLinks {
  /** 1 to 80 characters on one line. */
  readonly subject: string;
  readonly description?: string;
  /** Higher is sooner; default 0. */
  readonly priority?: number;
  /** Only a claimer with this role gets it. */
  readonly role?: string;
  /** Tasks that must be completed first: ids, and in `addAll` also keys of the batch. */
  readonly blockedBy?: readonly TaskId[];
  /** Who adds it, for the audit log; not part of the task. */
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
    ...definedFields({
      priority: priority || undefined,
      role: role || undefined,
      blockedBy: unlessEmpty(blockedBy),
    }),
    ...linksOf(draft),
  };
}

/** What holds for every task of the list, also for one that was written elsewhere. Throws invalid_input, payload_too_large. */
export function checkImported(task: Task): void {
  const { id, subject, description, role, claimer, result, failureReason, priority = 0 } = task;
  checkName("task id", id);
  checkSubject(subject);
  checkProse("description", description);
  checkPriority(priority);
  for (const [what, name] of Object.entries({ role, claimer })) {
    if (name !== undefined) checkName(what, name);
  }
  if (result !== undefined) checkProse("result", result);
  if (failureReason !== undefined) checkTaskReason(failureReason);
  checkNames("blocker", task.blockedBy ?? [], TASK_LIMITS.blockers);
  checkLinks(task);
  const { length } = task.history ?? [];
  if (length <= TASK_LIMITS.history) return;
  throw new SallyportError("payload_too_large", { what: "history", length });
}

/** Without duplicates; undefined for an empty list. */
function unlessEmpty(list: readonly string[]): readonly string[] | undefined {
  return list.length === 0 ? undefined : [...new Set(list)];
}

export function checkLinks({ sessionId, decisionIds = [], delegationId }: TaskLinks): void {
  if (sessionId !== undefined) checkName("session id", sessionId);
  if (delegationId !== undefined) checkName("delegation id", delegationId);
  checkNames("decision id", decisionIds, TASK_LIMITS.decisions);
}

export function linksOf({ sessionId, decisionIds = [], delegationId }: TaskLinks): TaskLinks {
  return definedFields({ sessionId, decisionIds: unlessEmpty(decisionIds), delegationId });
}

const LEASE_MS_MAX = 7 * 24 * 3_600_000;

/** A title: visible, on one line. */
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

/** Free text, stored unchanged. Lone surrogates are refused, because no database could return them. */
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
  if (!text.isWellFormed()) throw refused(what, "Remove the lone surrogate.");
}

export function checkTaskReason(reason: unknown): asserts reason is string {
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

function refused(what: string, hint: string): SallyportError {
  return new SallyportError("invalid_input", { what, hint });
}

/** Sets the blockers of a pending task. */
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
 * With the four operations alone. Two concurrent calls on two tasks can form a cycle, each harmless alone, and a swap of one
 * task cannot detect that. So each checks again after its write: at least the later one sees both and reverts its own.
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
    try {
      await store.compareAndSwap(restored, stored.version, cause);
    } catch (error) {
      // It was changed since; a cycle that remains is found by the watchdog.
      if (!isSallyportError(error, "concurrent_modification")) throw error;
    }
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

function refuseCycle(tasks: readonly Task[]): void {
  const cycle = findCycle(tasks);
  if (cycle === undefined) return;
  const hint = "These tasks would block each other for ever.";
  throw new SallyportError("invalid_input", { what: "blocked_by", cycle, hint });
}
