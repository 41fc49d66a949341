import { constants } from "node:fs";
import { open, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { SallyportError } from "../model/errors.ts";
import { TASK_LIMITS, type Task, type TaskId } from "../model/task.ts";
import { toIso } from "../util/clock.ts";
import { sha256Hex } from "../util/hash.ts";
import { parseStrictJson } from "../util/strict-json.ts";
import { findCycle } from "./blockers.ts";

/**
 * The layout with one JSON file per task, as in public descriptions of Claude Code's shared list. It has fewer fields than
 * ours, so both directions report what was lost.
 */
interface JsonTask {
  readonly id: string;
  readonly subject: string;
  readonly description: string;
  readonly activeForm?: string;
  readonly status: "pending" | "in_progress" | "completed";
  readonly owner?: string;
  readonly blocks: readonly string[];
  readonly blockedBy: readonly string[];
}

interface Lost {
  /** The task, or the file when it could not be read as one. */
  readonly id: string;
  readonly field: string;
  readonly what: string;
}

const STATUSES = { pending: "pending", claimed: "in_progress", completed: "completed" } as const;
const NO_COUNTERPART = [
  "createdAt",
  "version",
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

/** `failed` says how to export failed tasks, a status that the layout does not have. Default: they are omitted. */
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

/** Tasks in their first version, created now. What cannot be read as a task is omitted and listed as lost. */
function fromJsonTasks(
  values: readonly { readonly name: string; readonly value: unknown }[],
  now: number,
): { readonly tasks: readonly Task[]; readonly lost: readonly Lost[] } {
  const lost: Lost[] = [];
  const tasks = new Map<TaskId, Task>();
  const blockers: Edge[] = [];
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
    const task = taskOf(json, toIso(now));
    tasks.set(json.id, task);
    if (task.subject !== json.subject) {
      lost.push({ id: json.id, field: "subject", what: "the whole of it is in the description" });
    }
    for (const field of Object.keys(value as object).filter((key) => !READ.includes(key))) {
      lost.push({ id: json.id, field, what: "no counterpart" });
    }
    blockers.push(...json.blockedBy.map((by): Edge => [json.id, by]));
    blockers.push(...json.blocks.map((other): Edge => [other, json.id]));
  }
  lost.push(...setAllBlockers(tasks, blockers));
  return { tasks: [...tasks.values()], lost };
}

/** The first is blocked by the second. */
type Edge = readonly [TaskId, TaskId];

const READ = ["id", "subject", "description", "status", "owner", "blocks", "blockedBy"];

function taskOf(json: JsonTask, createdAt: string): Task {
  const { id, status, owner = "" } = json;
  const subject = titleOf(json.subject);
  const whole = [json.subject, json.description].filter((text) => text !== "").join("\n\n");
  const description = subject === json.subject ? json.description : whole;
  const base = { id, subject, description, createdAt, version: 1 };
  if (status !== "in_progress") return { ...base, status };
  const claimer = titleOf(owner);
  return { ...base, status: "claimed", claimedAt: createdAt, fence: 1, claimer };
}

/** One line of at most 80 characters, the limit of the task list. */
function titleOf(text: string): string {
  const line = text.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ").trim();
  const characters = [...line];
  if (characters.length <= TASK_LIMITS.subject) return line === "" ? "(no name)" : line;
  return `${characters.slice(0, TASK_LIMITS.subject - 1).join("")}…`;
}

/** Sets the blockers that exist and do not form a cycle. */
function setAllBlockers(tasks: Map<TaskId, Task>, edges: readonly Edge[]): readonly Lost[] {
  const lost: Lost[] = [];
  for (const [id, by] of edges) {
    const task = tasks.get(id);
    if (task === undefined || !tasks.has(by)) {
      const missing = task === undefined ? id : by;
      lost.push({ id, field: "blockedBy", what: `there is no task ${missing}` });
    } else tasks.set(id, { ...task, blockedBy: [...new Set([...(task.blockedBy ?? []), by])] });
  }
  for (;;) {
    const [id = "", by = ""] = findCycle([...tasks.values()]) ?? [];
    const task = tasks.get(id);
    if (task === undefined) return lost;
    tasks.set(id, { ...task, blockedBy: (task.blockedBy ?? []).filter((one) => one !== by) });
    lost.push({ id, field: "blockedBy", what: `it would form a cycle with ${by}` });
  }
}

/** Lenient where a field is missing; returns a sentence where the value is invalid. */
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

const FILES_MAX = 10_000;
const FILE_BYTES_MAX = 1024 * 1024;

/**
 * Writes one file per task into the folder, which must exist and contain no task yet: its program has its own lock and
 * numbers. Returns what the layout cannot express.
 */
export async function exportJsonTasks(
  folder: string,
  tasks: readonly Task[],
  options: { readonly failed?: "leave_out" | "as_pending" } = {},
): Promise<{ readonly written: number; readonly lost: readonly Lost[] }> {
  if ((await taskFiles(folder)).length > 0) {
    const hint = "The folder holds tasks already. Export into a new one.";
    throw new SallyportError("already_exists", { folder, hint });
  }
  const json = toJsonTasks(tasks, options);
  for (const task of json.tasks) {
    const file = path.join(folder, fileNameOf(task.id));
    await writeFile(file, `${JSON.stringify(task, undefined, 2)}\n`, { flag: "wx" });
  }
  return { written: json.tasks.length, lost: json.lost };
}

/** Reads every task file of the folder. Nothing is stored: pass the tasks to `compareAndSwap` with version 0. */
export async function importJsonTasks(
  folder: string,
  { now }: { readonly now: number },
): Promise<{ readonly tasks: readonly Task[]; readonly lost: readonly Lost[] }> {
  const names = await taskFiles(folder);
  if (names.length > FILES_MAX) {
    throw new SallyportError("payload_too_large", { folder, files: names.length, most: FILES_MAX });
  }
  const values: { name: string; value: unknown }[] = [];
  const lost: Lost[] = [];
  for (const name of names) {
    try {
      values.push({ name, value: await readJson(path.join(folder, name)) });
    } catch (error) {
      const what = error instanceof Error ? error.message : "cannot be read";
      lost.push({ id: name, field: "task", what });
    }
  }
  const read = fromJsonTasks(values, now);
  return { tasks: read.tasks, lost: [...lost, ...read.lost] };
}

/** In numeric order: 9.json before 10.json. Lock files begin with a dot and are skipped. */
async function taskFiles(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /^[^.].*\.json$/.test(entry.name))
    .map(({ name }) => name)
    .toSorted((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

async function readJson(file: string): Promise<unknown> {
  // A symbolic link could lead out of the folder.
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = await handle.stat();
    if (size > FILE_BYTES_MAX) throw new RangeError(`larger than ${FILE_BYTES_MAX} bytes`);
    return parseStrictJson(await readFile(handle));
  } finally {
    await handle.close();
  }
}

/** Ids that are not valid file names are hashed. */
function fileNameOf(id: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/.test(id)) return `${id}.json`;
  return `task-${sha256Hex(id.toWellFormed()).slice(0, 32)}.json`;
}
