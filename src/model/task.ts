import { fromIso, toIso } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { type ErrorCode, SallyportError } from "./errors.ts";
import type { Instant } from "./names.ts";
import { instant, integer, key, oneOf, prose, record, text as textField } from "./record.ts";

/**
 * The life of a task. Types, checks, documentation and buttons are derived from this table; the names are stored and
 * never renamed. `claimed` goes back to `pending` when a worker gives a task up or its lease runs out, and `failed` does
 * only when it is reopened.
 */
export const TASK_MOVES = {
  pending: ["claimed", "completed", "failed"],
  claimed: ["completed", "failed", "pending"],
  completed: [],
  failed: ["pending"],
} as const satisfies Record<string, readonly string[]>;

export type TaskStatus = keyof typeof TASK_MOVES;
export type TaskId = string;

export const TASK_STATUSES = Object.keys(TASK_MOVES) as readonly TaskStatus[];

export function isTaskStatus(name: unknown): name is TaskStatus {
  return typeof name === "string" && Object.hasOwn(TASK_MOVES, name);
}

/**
 * An entry of the shared list. The first eleven fields are the whole of a plain task; what follows them may be missing
 * everywhere, so a store or a tool that knows only the plain ones keeps valid tasks. A field that is empty is absent.
 */
export interface Task {
  readonly id: TaskId;
  /** A title of 1 to 80 characters, on one line. */
  readonly subject: string;
  readonly description: string;
  readonly status: TaskStatus;
  /** A free name: an agent, an employee number, a system account. */
  readonly claimer?: string;
  /** Plain text, never interpreted. */
  readonly result?: string;
  readonly failureReason?: string;
  readonly createdAt: Instant;
  readonly claimedAt?: Instant;
  readonly completedAt?: Instant;
  /** Goes up by exactly one with every change and starts at 1, so that 0 can mean "does not exist". */
  readonly version: number;

  /** Higher is sooner; 0 when absent. */
  readonly priority?: number;
  /** Only a worker with this role may claim it. */
  readonly role?: string;
  /** Tasks that must be completed before this one can be claimed. */
  readonly blockedBy?: readonly TaskId[];
  /** The claim ends at this moment unless it is renewed. Without it, a claim lasts until it is ended. */
  readonly leaseUntil?: Instant;
  /** The version that the last claim wrote, so it only grows. Writes under the claim carry it; it stays when the claim ends. */
  readonly fence?: number;
  readonly sessionId?: string;
  readonly decisionIds?: readonly string[];
  readonly delegationId?: string;
  /** What went wrong before, oldest first. */
  readonly history?: readonly TaskNote[];
}

/** One end that was not a completion, or one new beginning. */
export interface TaskNote {
  readonly at: Instant;
  readonly what: "failed" | "reopened" | "released" | "expired";
  /** The claimer that failed, released or lost it; for `reopened`, who did so. */
  readonly by?: string;
  readonly reason?: string;
  readonly fence?: number;
}

export const TASK_NOTES: readonly TaskNote["what"][] = [
  "failed",
  "reopened",
  "released",
  "expired",
];

/** What can happen to a task, as the feed says it. */
export type TaskEvent =
  | "task.added"
  | "task.claimed"
  | "task.renewed"
  | "task.released"
  | "task.expired"
  | "task.completed"
  | "task.failed"
  | "task.reopened"
  | "task.linked"
  | "task.blocked"
  /** By hand, through the store. */
  | "task.changed";

/** Each field with its name in JSON, in the order in which it is written, and with what it holds. */
export const TASK_FIELDS = {
  id: { json: "id", kind: "line" },
  subject: { json: "subject", kind: "line" },
  description: { json: "description", kind: "prose" },
  status: { json: "status", kind: "status" },
  claimer: { json: "claimed_by", kind: "line" },
  result: { json: "result", kind: "prose" },
  failureReason: { json: "fail_reason", kind: "prose" },
  createdAt: { json: "created_at", kind: "instant" },
  claimedAt: { json: "claimed_at", kind: "instant" },
  completedAt: { json: "completed_at", kind: "instant" },
  version: { json: "version", kind: "count" },
  priority: { json: "priority", kind: "integer" },
  role: { json: "role", kind: "line" },
  blockedBy: { json: "blocked_by", kind: "lines" },
  leaseUntil: { json: "lease_until", kind: "instant" },
  fence: { json: "fence", kind: "count" },
  sessionId: { json: "session_id", kind: "line" },
  decisionIds: { json: "decision_ids", kind: "lines" },
  delegationId: { json: "delegation_id", kind: "line" },
  history: { json: "history", kind: "notes" },
} as const satisfies Record<keyof Task, FieldRow>;

type TaskField = keyof typeof TASK_FIELDS;
export type TaskFieldKind =
  | "line"
  | "prose"
  | "status"
  | "instant"
  | "count"
  | "integer"
  | "lines"
  | "notes";

interface FieldRow {
  readonly json: string;
  readonly kind: TaskFieldKind;
}

/** Characters are counted as code points. Beyond a limit nothing is cut: the call is refused. */
export const TASK_LIMITS = {
  subject: 80,
  /** Description and result each. What is larger belongs in a file, and the result says where. */
  prose: 100_000,
  /** Reasons are kept for ever, one beside the other, so they are shorter. */
  reason: 10_000,
  batch: 1_000,
  priority: 1_000_000,
  blockers: 100,
  decisions: 1_000,
  history: 100,
} as const;

/** The original's mark for "not set". Kept only as the creation time of a task written by hand without one: the oldest. */
export const ZERO_TIME: Instant = "0001-01-01T00:00:00.000Z";

/** The fields of a task that rarely change. */
export const TASKS = record(
  "tasks",
  {
    id: key<TaskId>(),
    status: oneOf(TASK_STATUSES),
    /** JSON of all that has no column. */
    facts: textField(),
    claimer: textField().optional(),
    claimedAt: instant().optional(),
    completedAt: instant().optional(),
    result: prose({ limit: "none" }).optional(),
    fence: integer().optional(),
    version: integer(),
  },
  { indexes: [{ name: "by_ord", on: ["ord"] }], fillfactor: 60 },
);

/** The lanes of the queue, each with its status. Only `ready` tasks are handed out. */
export const LANES = {
  ready: "pending",
  /** Its blockers are not completed. */
  waiting: "pending",
  /** Made pending by hand, with traces of an earlier claim. */
  untidy: "pending",
  leased: "claimed",
  /** Claimed without a lease. */
  kept: "claimed",
  failed: "failed",
} as const satisfies Record<string, TaskStatus>;
export type Lane = keyof typeof LANES;

/**
 * One narrow row for each task that is not completed. While it is there it is the truth about claim and version: a claim
 * or a renewal writes this row and nothing else. `factsVersion` says to which version of the row in `tasks` it belongs,
 * so that a reader of both notices when they were read at different moments.
 */
const QUEUE = record(
  "task_queue",
  {
    id: key<TaskId>(),
    lane: oneOf(Object.keys(LANES) as readonly Lane[]),
    role: textField(),
    priority: integer(),
    sessionId: textField(),
    claimer: textField().optional(),
    claimedAt: instant().optional(),
    /** Empty while unclaimed, `NEVER` for a claim without a lease, 0 when the row must be tidied first. */
    leaseUntil: integer().optional(),
    /** Of the claim. While unclaimed it is the version, so that the next claim (one more) equals the version it writes. */
    fence: integer(),
    version: integer(),
    factsVersion: integer(),
    /** How many of its blockers are not completed. */
    waits: integer(),
    /** How many others wait for it. */
    dependents: integer(),
  },
  {
    indexes: [
      { name: "next", on: ["lane", { down: "priority" }, "ord"] },
      { name: "by_lease", on: ["lease_until"], whenSet: true },
    ],
    neverReusesOrd: true,
  },
);
/** `ord` is among its columns because the search for the next task compares it. */
export const TASK_QUEUE: typeof QUEUE = { ...QUEUE, columns: { ord: "int", ...QUEUE.columns } };

/**
 * Who waits for whom. A task in the queue counts the blockers it waits for and the tasks that wait for it. Both counts
 * are changed in the transaction that makes or ends the waiting, under the condition that they are still what was read,
 * so a task is neither handed out too early nor forgotten.
 */
export const TASK_BLOCKS = record(
  "task_blocks",
  { id: key(), blockerId: textField<TaskId>(), taskId: textField<TaskId>() },
  { indexes: [{ name: "by_blocker", on: ["blocker_id", "ord"] }], neverReusesOrd: true },
);

const FIELDS = Object.entries(TASK_FIELDS) as [TaskField, { json: string; kind: TaskFieldKind }][];

/** A copy that shares nothing with the task, with empty fields left out. Throws invalid_input when it is not one. */
export function cleanTask(task: Task): Task {
  return build((field) => task[field], "invalid_input");
}

/** Snake-case names, empty fields left out. */
export function taskToJson(task: Task): JsonObject {
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
function readInstant(text: string): Instant | undefined {
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
function readValue(kind: TaskFieldKind, value: unknown): unknown {
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
  return definedFields({
    at: readInstant(text(at)) ?? ZERO_TIME,
    what: what as TaskNote["what"],
    by: by === undefined || by === "" ? undefined : text(by),
    reason: reason === undefined || reason === "" ? undefined : text(reason),
    fence: fence === undefined ? undefined : whole(fence),
  });
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
