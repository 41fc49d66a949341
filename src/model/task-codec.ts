import { fromIso, toIso } from "../util/clock.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { type ErrorCode, SallyportError } from "./errors.ts";
import type { Instant } from "./instant.ts";
import {
  type FieldKind,
  isTaskStatus,
  TASK_FIELDS,
  TASK_NOTES,
  type Task,
  type TaskField,
  type TaskNote,
  ZERO_TIME,
} from "./task.ts";

/** A task as JSON: snake-case names, empty fields left out. */
export type TaskJson = JsonObject;

const FIELDS = Object.entries(TASK_FIELDS) as [TaskField, { json: string; kind: FieldKind }][];

/** A copy that shares nothing with the task, with empty fields left out. Throws invalid_input when it is not one. */
export function cleanTask(task: Task): Task {
  return build((field) => task[field], "invalid_input");
}

export function taskToJson(task: Task): TaskJson {
  const clean = cleanTask(task);
  return Object.fromEntries(
    FIELDS.filter(([field]) => clean[field] !== undefined).map(([field, { json }]) => [
      json,
      clean[field] as JsonValue,
    ]),
  );
}

/**
 * Reads what `taskToJson` writes, and what others write: unknown names are passed over, a zero time is one that is not
 * set, only the id is indispensable. Throws damaged_record.
 */
export function taskFromJson(value: unknown): Task {
  if (typeof value !== "object" || value === null) throw wrong("task", "damaged_record");
  const read = (field: TaskField): unknown => {
    const { json } = TASK_FIELDS[field];
    return Object.hasOwn(value, json) ? (value as Record<string, unknown>)[json] : undefined;
  };
  return build(read, "damaged_record");
}

/** RFC 3339 with any offset and precision, as our own instant; undefined for the zero time. Throws RangeError. */
export function readInstant(text: string): Instant | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(text)) {
    throw new RangeError("A time is written like 2026-11-15T06:00:00.000Z.");
  }
  // Date.parse takes 30 February for 2 March; this does not.
  fromIso(`${text.slice(0, 10)}T00:00:00.000Z`);
  const instant = toIso(Date.parse(text));
  return instant === ZERO_TIME ? undefined : instant;
}

function build(read: (field: TaskField) => unknown, code: ErrorCode): Task {
  const fields: Partial<Record<TaskField, unknown>> = {};
  for (const [field, { json, kind }] of FIELDS) {
    try {
      const value = readValue(kind, read(field));
      if (value !== undefined) fields[field] = value;
    } catch (cause) {
      throw wrong(json, code, cause);
    }
  }
  if (fields.id === undefined) throw wrong("id", code);
  const defaults = { subject: "", description: "", status: "pending", createdAt: ZERO_TIME };
  return { ...defaults, version: 1, ...fields } as Task;
}

/** The value of a field, undefined when it is empty. Throws when it is not of this kind. */
function readValue(kind: FieldKind, value: unknown): unknown {
  if (value === undefined || value === null || value === "") return undefined;
  switch (kind) {
    case "line":
    case "prose":
      return text(value);
    case "status":
      if (!isTaskStatus(value)) throw new TypeError("not a status");
      return value;
    case "instant":
      return readInstant(text(value));
    case "count":
      if (whole(value) < 0) throw new TypeError("negative");
      return value === 0 ? undefined : value;
    case "integer":
      return whole(value) === 0 ? undefined : value;
    case "lines":
      return filled(list(value).map(text));
    case "notes":
      return filled(list(value).map(readNote));
  }
}

function readNote(value: unknown): TaskNote {
  const { at, what, by, reason, fence } = value as Record<keyof TaskNote, unknown>;
  if (!TASK_NOTES.includes(what as TaskNote["what"])) throw new TypeError("not a note");
  return {
    at: readInstant(text(at)) ?? ZERO_TIME,
    what: what as TaskNote["what"],
    ...(by === undefined || by === "" ? {} : { by: text(by) }),
    ...(reason === undefined || reason === "" ? {} : { reason: text(reason) }),
    ...(fence === undefined ? {} : { fence: whole(fence) }),
  };
}

function text(value: unknown): string {
  if (typeof value !== "string") throw new TypeError("not a text");
  return value;
}

function whole(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw new TypeError("not a whole number");
  return value as number;
}

function list(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new TypeError("not a list");
  return value;
}

function filled<T>(values: readonly T[]): readonly T[] | undefined {
  return values.length === 0 ? undefined : values;
}

function wrong(what: string, code: ErrorCode, cause?: unknown): SallyportError {
  const hint = "This is not a task as the reference page on tasks describes it.";
  return new SallyportError(code, { what, hint }, cause);
}
