import type { Task, TaskId } from "../model/task.ts";
import type { JsonObject } from "../util/json.ts";
import type { Change, Conditions, EventPlan, Row, Step } from "./engine.ts";
import { dependentsOf, type Fresh, recount, waitFor } from "./task-blocks.ts";
import { rowOfQueue, rowOfTask, TASK_QUEUE, TASKS } from "./task-rows.ts";
import { CALLER, type TaskCause, type TaskSwap } from "./tasks.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** A task as it lies in the store: both rows, read together. */
export interface StoredTask {
  readonly task: Task;
  /** Undefined when it is completed. */
  readonly queue: Row | undefined;
}

/** Still live, by the store's clock at the moment of writing. */
export const LIVE = { lease_until: { atLeast: { nowPlusMs: 1 } } } as const satisfies Conditions;

/** A swap as steps. `next` carries the version it will have, one above that of the stored task. */
export async function swapChange(
  engine: TenantEngine,
  { task: current, queue }: StoredTask,
  next: Task,
  cause: TaskCause | undefined,
): Promise<Change> {
  const { id } = next;
  const done = next.status === "completed";
  const { waits, steps: edges } = await edgesOf(engine, { current, queue, next });
  const version = current.version;
  const facts = { table: TASKS, id, set: rowOfTask(next) };
  const steps: Step[] = [];
  if (queue === undefined) {
    steps.push({ op: "update", ...facts, where: { version } });
    if (!done) {
      // Completed and now open again, by hand: those who wait for it wait again.
      const dependents = await dependentsOf(engine, id);
      const row = { ...rowOfQueue(next, waits), dependents: dependents.length };
      steps.push({ op: "insert", table: TASK_QUEUE, id, row });
      steps.push(...(await recount(engine, dependents, 1)));
    }
  } else {
    // Others change these counts without a new version. If they did since we looked, we look again.
    const { waits: was = null, dependents = null } = queue;
    const where = { version, waits: was, ...(cause?.underLease === true ? LIVE : {}) };
    const entry = { table: TASK_QUEUE, id };
    if (done) steps.push({ op: "delete", ...entry, where: { ...where, dependents } });
    else steps.push({ op: "update", ...entry, where, set: rowOfQueue(next, waits) });
    steps.push({ op: "update", ...facts, where: {} });
    if (done && dependents !== 0) {
      steps.push(...(await recount(engine, await dependentsOf(engine, id), -1)));
    }
  }
  return { steps: merged([...steps, ...edges]), events: [eventOf(next, cause, "task.changed")] };
}

async function edgesOf(
  engine: TenantEngine,
  { current, queue, next }: { current: Task; queue: Row | undefined; next: Task },
) {
  const before = queue === undefined ? [] : (current.blockedBy ?? []);
  const after = next.status === "completed" ? [] : (next.blockedBy ?? []);
  const same = before.length === after.length && before.every((id) => after.includes(id));
  if (same) return { waits: Number(queue?.["waits"] ?? 0), steps: [] };
  return waitFor(engine, next.id, { before, after, fresh: new Map() });
}

/** New tasks as steps. `known` are those who waited already for a task that was not there. */
export async function insertChange(
  engine: TenantEngine,
  swaps: readonly TaskSwap[],
  known: readonly TaskId[] = [],
): Promise<Change> {
  const fresh: Fresh = new Map(swaps.map(({ task }) => [task.id, task.status === "completed"]));
  const steps: Step[] = [];
  for (const { task } of swaps) {
    const { id } = task;
    steps.push({ op: "insert", table: TASKS, id, row: rowOfTask(task) });
    const done = task.status === "completed";
    if (done && known.length > 0) steps.push(...(await recount(engine, known, -1)));
    if (done) continue;
    const after = task.blockedBy ?? [];
    const waiting = await waitFor(engine, id, { before: [], after, fresh });
    const within = swaps.filter(({ task: { blockedBy = [] } }) => blockedBy.includes(id)).length;
    const row = { ...rowOfQueue(task, waiting.waits), dependents: known.length + within };
    steps.push({ op: "insert", table: TASK_QUEUE, id, row }, ...waiting.steps);
  }
  const events = swaps.map(({ task, cause }) => eventOf(task, cause, "task.added"));
  return { steps: merged(steps), events };
}

/** A change names each record once: where two steps would change the same row, one changes both. */
function merged(steps: readonly Step[]): readonly Step[] {
  const all: Step[] = [];
  const updates = new Map<string, number>();
  for (const step of steps) {
    if (step.op !== "update" || step.table !== TASK_QUEUE) {
      all.push(step);
      continue;
    }
    const index = updates.get(step.id);
    const first = index === undefined ? undefined : all[index];
    if (index === undefined || first?.op !== "update") {
      updates.set(step.id, all.push(step) - 1);
      continue;
    }
    const plus = added(first.set["dependents"]) + added(step.set["dependents"]);
    const set = { ...first.set, ...step.set, ...(plus === 0 ? {} : { dependents: { plus } }) };
    all[index] = { ...first, where: { ...first.where, ...step.where }, set };
  }
  return all;
}

function added(value: unknown): number {
  return typeof value === "object" && value !== null && "plus" in value ? Number(value.plus) : 0;
}

function eventOf(
  task: Task,
  { event, actor }: TaskCause = { event: "task.changed", actor: CALLER },
  fallback: "task.added" | "task.changed" = "task.changed",
): EventPlan {
  const { id, sessionId = "", version, fence } = task;
  const data: JsonObject = { version, ...(fence === undefined ? {} : { fence }) };
  if (fallback === "task.added") data["subject"] = task.subject.toWellFormed();
  if (task.failureReason !== undefined) data["reason"] = task.failureReason.toWellFormed();
  const type = event === "task.changed" ? fallback : event;
  return { type, subject: id, session: sessionId, actor, data };
}
