import { SallyportError } from "../model/errors.ts";
import type { Task, TaskStatus } from "../model/task.ts";
import { taskFromJson, taskToJson } from "../model/task-codec.ts";
import { fromIso, toIso } from "../util/clock.ts";
import type { JsonObject } from "../util/json.ts";
import { encodeValue } from "../util/value-codec.ts";
import type { Cell, Row, Table, Values } from "./engine.ts";
import { decoded } from "./read-cell.ts";

/** How a task lies in rows: what is written rarely, and what every claim writes. */

export const TASKS: Table = {
  name: "tasks",
  columns: {
    status: "text",
    facts: "text",
    claimer: "text",
    claimed_at: "int",
    completed_at: "int",
    result: "text",
    fence: "int",
    version: "int",
  },
  indexed: [],
};

/**
 * One narrow row for each task that is not completed. While it is there it is the truth about claim and version: a claim
 * or a renewal writes this row and nothing else. `facts_version` says to which version of the row in `tasks` it belongs,
 * so that a reader of both notices when they were read at different moments.
 */
export const TASK_QUEUE: Table = {
  name: "task_queue",
  columns: {
    /** Named here because the search for the next task compares it. */
    ord: "int",
    lane: "text",
    role: "text",
    priority: "int",
    session_id: "text",
    claimer: "text",
    claimed_at: "int",
    /** Empty while nobody holds it, `NEVER` for a claim without a lease, 0 when it must be put in order first. */
    lease_until: "int",
    /** Of the claim; while nobody holds it the version, so that the next claim (one more) has the version it writes. */
    fence: "int",
    version: "int",
    facts_version: "int",
    /** How many of its blockers are not completed. */
    waits: "int",
    /** How many others wait for it. */
    dependents: "int",
  },
  indexed: ["lane"],
};

/** Where a task stands in the queue. Only what is `ready` is handed out. */
const LANES = {
  ready: "pending",
  /** Its blockers are not completed. */
  waiting: "pending",
  /** Somebody made it pending by hand and left traces of an earlier claim. */
  untidy: "pending",
  leased: "claimed",
  /** Claimed without a lease. */
  kept: "claimed",
  failed: "failed",
} as const satisfies Record<string, TaskStatus>;
export type Lane = keyof typeof LANES;

export const NEVER = fromIso("9999-12-31T23:59:59.999Z");

const OWN_COLUMNS = ["id", "status", "claimer", "claimed_at", "completed_at", "result", "fence"];

export function rowOfTask(task: Task): Values {
  const json: JsonObject = { ...taskToJson(task) };
  for (const name of [...OWN_COLUMNS, "version"]) delete json[name];
  // Where it is claimed, the queue has it.
  if (task.status === "claimed") delete json["lease_until"];
  return {
    status: task.status,
    facts: JSON.stringify(json),
    claimer: task.claimer ?? null,
    claimed_at: msOf(task.claimedAt),
    completed_at: msOf(task.completedAt),
    result: task.result === undefined ? null : encodeValue(task.result),
    fence: task.fence ?? null,
    version: task.version,
  };
}

/** Without `dependents`, which others count. */
export function rowOfQueue(task: Task, waits: number): Values {
  const claimed = task.status === "claimed";
  const lane = laneOf(task, waits);
  return {
    lane,
    role: task.role ?? "",
    priority: task.priority ?? 0,
    session_id: task.sessionId ?? "",
    claimer: claimed ? (task.claimer ?? "") : null,
    claimed_at: claimed ? msOf(task.claimedAt) : null,
    lease_until: claimed ? (msOf(task.leaseUntil) ?? NEVER) : lane === "untidy" ? 0 : null,
    fence: claimed ? (task.fence ?? 0) : task.version,
    version: task.version,
    facts_version: task.version,
    waits,
  };
}

/** Of a task that stands in the queue. */
function laneOf(task: Task, waits: number): Lane {
  if (task.status === "failed") return "failed";
  if (task.status === "claimed") return task.leaseUntil === undefined ? "kept" : "leased";
  const traces = [task.claimer, task.claimedAt, task.leaseUntil, task.result, task.completedAt];
  if (task.failureReason !== undefined || traces.some((trace) => trace !== undefined))
    return "untidy";
  return waits > 0 ? "waiting" : "ready";
}

/** The lane after one of its blockers was completed, or is open again. */
export function movedLane(lane: Cell | undefined, waits: number): string {
  if (lane === "waiting" && waits <= 0) return "ready";
  if (lane === "ready" && waits > 0) return "waiting";
  return String(lane);
}

/** Both rows belong together. A completed task has none in the queue, and one that was read just before is no longer true. */
export function fits(row: Row, queue: Row | undefined): boolean {
  if (row["status"] === "completed") return true;
  return queue !== undefined && queue["facts_version"] === row["version"];
}

/** Throws damaged_record. */
export function taskOf(row: Row, queue: Row | undefined): Task {
  const open = row["status"] === "completed" ? undefined : queue;
  const claim = open !== undefined && isClaimed(open) ? open : undefined;
  const holder = claim ?? row;
  const lease = claim?.["lease_until"];
  return taskFromJson({
    ...factsIn(row),
    id: row["id"],
    status: open === undefined ? row["status"] : statusOf(open),
    claimer: holder["claimer"],
    result: row["result"] === null ? undefined : decoded(row, "result"),
    claimed_at: isoIn(holder["claimed_at"]),
    completed_at: isoIn(row["completed_at"]),
    version: (open ?? row)["version"],
    fence: holder["fence"],
    ...(lease === undefined || lease === NEVER ? {} : { lease_until: isoIn(lease) }),
  });
}

function isClaimed({ lane }: Row): boolean {
  return lane === "leased" || lane === "kept";
}

function statusOf({ id, lane }: Row): TaskStatus {
  const status = Object.hasOwn(LANES, String(lane)) ? LANES[lane as Lane] : undefined;
  if (status !== undefined) return status;
  const hint = "Run a store check and compare with the audit trail before you trust this store.";
  throw new SallyportError("damaged_record", { id: String(id), column: "lane", hint });
}

function factsIn(row: Row): JsonObject {
  try {
    return JSON.parse(String(row["facts"])) as JsonObject;
  } catch (cause) {
    const hint = "Compare with the audit trail and restore the record.";
    const id = String(row["id"]);
    throw new SallyportError("damaged_record", { id, column: "facts", hint }, cause);
  }
}

function msOf(instant: string | undefined): number | null {
  return instant === undefined ? null : fromIso(instant);
}

function isoIn(cell: Cell | undefined): string | undefined {
  return typeof cell === "number" ? toIso(cell) : undefined;
}
