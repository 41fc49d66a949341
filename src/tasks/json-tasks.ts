import type { Task, TaskId } from "../model/task.ts";
import { toIso } from "../util/clock.ts";
import { findCycle } from "./dependencies.ts";

/**
 * The layout with one JSON file per task that public descriptions of Claude Code's shared list show. It says less than we
 * do, so both directions answer with what was lost. Pure; `json-task-folder.ts` reads and writes the files.
 */
export interface JsonTask {
  readonly id: string;
  readonly subject: string;
  readonly description: string;
  readonly activeForm?: string;
  readonly status: "pending" | "in_progress" | "completed";
  readonly owner?: string;
  readonly blocks: readonly string[];
  readonly blockedBy: readonly string[];
}

export interface Lost {
  /** The task, or the file when it could not be read as one. */
  readonly id: string;
  readonly field: string;
  readonly what: string;
}

const STATUSES = { pending: "pending", claimed: "in_progress", completed: "completed" } as const;
const NO_COUNTERPART = [
  "result",
  "failureReason",
  "claimedAt",
  "completedAt",
  "priority",
  "role",
  "leaseUntil",
  "fence",
  "sessionId",
  "decisionIds",
  "delegationId",
  "history",
] as const satisfies readonly (keyof Task)[];

/** `failed` says what becomes of failed tasks, which that layout does not know. Left out, nobody there takes them up. */
export function toJsonTasks(
  tasks: readonly Task[],
  { failed = "leave_out" }: { readonly failed?: "leave_out" | "as_pending" } = {},
): { readonly tasks: readonly JsonTask[]; readonly lost: readonly Lost[] } {
  const lost: Lost[] = [];
  const written = tasks.filter(({ id, status }) => {
    if (status !== "failed") return true;
    lost.push({ id, field: "status", what: failed === "leave_out" ? "left out" : "failed" });
    return failed === "as_pending";
  });
  for (const task of written) {
    for (const field of NO_COUNTERPART) {
      if (task[field] !== undefined) lost.push({ id: task.id, field, what: "no counterpart" });
    }
    lost.push({ id: task.id, field: "createdAt, version", what: "no counterpart" });
  }
  const json = written.map((task): JsonTask => {
    const status = task.status === "failed" ? "pending" : STATUSES[task.status];
    return {
      id: task.id,
      subject: task.subject,
      description: task.description,
      status,
      ...(status === "in_progress" && task.claimer !== undefined ? { owner: task.claimer } : {}),
      blocks: written.filter(({ blockedBy }) => blockedBy?.includes(task.id)).map(({ id }) => id),
      blockedBy: task.blockedBy ?? [],
    };
  });
  return { tasks: json, lost };
}

/** Tasks in their first version, created now. What cannot be read as a task is left out and named among the lost. */
export function fromJsonTasks(
  values: readonly { readonly name: string; readonly value: unknown }[],
  now: number,
): { readonly tasks: readonly Task[]; readonly lost: readonly Lost[] } {
  const lost: Lost[] = [];
  const tasks = new Map<TaskId, Task>();
  const blockers: [TaskId, TaskId][] = [];
  for (const { name, value } of values) {
    const json = readJsonTask(value);
    if (typeof json === "string" || tasks.has(json.id)) {
      lost.push({
        id: name,
        field: "task",
        what: typeof json === "string" ? json : "the id is taken",
      });
      continue;
    }
    tasks.set(json.id, taskOf(json, toIso(now)));
    for (const field of Object.keys(value as object).filter((key) => !READ.includes(key))) {
      lost.push({ id: json.id, field, what: "no counterpart" });
    }
    blockers.push(...json.blockedBy.map((by): [TaskId, TaskId] => [json.id, by]));
    blockers.push(...json.blocks.map((other): [TaskId, TaskId] => [other, json.id]));
  }
  for (const [id, by] of blockers) {
    const what = addBlocker(tasks, id, by);
    if (what !== undefined) lost.push({ id, field: "blockedBy", what });
  }
  return { tasks: [...tasks.values()], lost };
}

const READ = ["id", "subject", "description", "status", "owner", "blocks", "blockedBy"];

function taskOf({ id, subject, description, status, owner }: JsonTask, createdAt: string): Task {
  const base = { id, subject, description, createdAt, version: 1 };
  if (status !== "in_progress") return { ...base, status };
  return {
    ...base,
    status: "claimed",
    claimedAt: createdAt,
    fence: 1,
    ...(owner ? { claimer: owner } : {}),
  };
}

/** Why it cannot be kept, undefined when it is. */
function addBlocker(tasks: Map<TaskId, Task>, id: TaskId, by: TaskId): string | undefined {
  const task = tasks.get(id);
  if (task === undefined || !tasks.has(by))
    return `there is no task ${task === undefined ? id : by}`;
  const next = { ...task, blockedBy: [...new Set([...(task.blockedBy ?? []), by])] };
  const cycle = findCycle([...tasks.values()].map((one) => (one.id === id ? next : one)));
  if (cycle !== undefined) return `a circle with ${by}`;
  tasks.set(id, next);
  return undefined;
}

/** Our own reading of a foreign shape: lenient where something is missing, a sentence where it makes no sense. */
function readJsonTask(value: unknown): JsonTask | string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "not an object";
  const {
    id,
    subject,
    description = "",
    status,
    owner = "",
    blocks = [],
    blockedBy = [],
  } = value as Record<string, unknown>;
  if ((typeof id !== "string" && typeof id !== "number") || id === "") return "it has no id";
  if (typeof subject !== "string") return "it has no subject";
  if (typeof description !== "string" || typeof owner !== "string")
    return "a text is something else";
  if (status !== "pending" && status !== "in_progress" && status !== "completed") {
    return `the status is ${JSON.stringify(status)}`;
  }
  const lists = [blocks, blockedBy].map((list) => (Array.isArray(list) ? list.map(String) : []));
  const [blocked = [], by = []] = lists;
  return { id: String(id), subject, description, status, owner, blocks: blocked, blockedBy: by };
}
