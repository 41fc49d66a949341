// Task lists as documents: the JSON of tasks as a list, and the Markdown file.

import { SallyportError } from "../model/errors.ts";
import { TASK_LIMITS, type Task, type TaskId, taskFromJson, taskToJson } from "../model/task.ts";
import type { TaskStore } from "../store/tasks.ts";
import { errorText } from "../util/error-text.ts";
import { parseStrictJson } from "../util/strict-json.ts";
import { checkImported } from "./add-tasks.ts";
import { findCycle } from "./blockers.ts";
import { parseTaskFile, printTaskFile, putTask } from "./markdown-format.ts";

export const TASK_FORMATS = ["json", "markdown"] as const;
export type TaskFormat = (typeof TASK_FORMATS)[number];

/** One document with these tasks. */
export function exportTasks(tasks: readonly Task[], format: TaskFormat): string {
  if (format === "json") return `${JSON.stringify(tasks.map(taskToJson), undefined, 2)}\n`;
  return printTaskFile(tasks.reduce(putTask, parseTaskFile("")));
}

/** The tasks of a document. Throws invalid_input for text that is not one, damaged_record for a task that is not one. */
export function readTasks(text: string, format: TaskFormat): readonly Task[] {
  if (format === "markdown") {
    const tasks = [...parseTaskFile(text).tasks.values()];
    // Any text is Markdown: what has no task in it is most likely another document.
    if (tasks.length === 0 && text !== exportTasks([], "markdown")) {
      throw notTasks("It has no task in the form of a Markdown task list.");
    }
    return tasks;
  }
  const value = parsed(text);
  if (!Array.isArray(value)) throw notTasks("It is not a list of tasks.");
  return value.map(taskFromJson);
}

function parsed(text: string): unknown {
  try {
    return parseStrictJson(Buffer.from(text, "utf8"));
  } catch (error) {
    throw notTasks(`It is not JSON: ${errorText(error)}`);
  }
}

function notTasks(hint: string): SallyportError {
  return new SallyportError("invalid_input", { what: "text", hint });
}

export interface Imported {
  readonly added: readonly TaskId[];
  /** Their ids were taken. */
  readonly skipped: readonly TaskId[];
}

/** See `TaskList.importAll`. */
export async function importTasks(
  store: TaskStore,
  tasks: readonly Task[],
  by: string,
): Promise<Imported> {
  if (tasks.length > TASK_LIMITS.batch) {
    const hint = `Import at most ${TASK_LIMITS.batch} tasks at once.`;
    throw new SallyportError("payload_too_large", { what: "tasks", length: tasks.length, hint });
  }
  for (const task of tasks) checkImported(task);
  const there = new Map((await store.list()).map((task) => [task.id, task]));
  const fresh = tasks.filter(({ id }) => !there.has(id)).map(firstVersion);
  const cycle = findCycle([...there.values(), ...fresh]);
  if (cycle !== undefined) {
    const hint = "These tasks would block each other for ever.";
    throw new SallyportError("invalid_input", { what: "blocked_by", cycle, hint });
  }
  for (const task of fresh) {
    await store.compareAndSwap(task, 0, { event: "task.added", actor: by });
  }
  const skipped = tasks.filter(({ id }) => there.has(id)).map(({ id }) => id);
  return { added: fresh.map(({ id }) => id), skipped };
}

/** The fence of a claim is the version that it wrote, and here that is the first one. */
function firstVersion({ fence: _, ...task }: Task): Task {
  return { ...task, version: 1, ...(task.status === "claimed" ? { fence: 1 } : {}) };
}
