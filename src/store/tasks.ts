import { SallyportError } from "../model/errors.ts";
import {
  LANES,
  type Lane,
  TASKS,
  type Task,
  type TaskEvent,
  type TaskId,
  type TaskStatus,
  taskFromJson,
  taskToJson,
} from "../model/task.ts";
import { fromIso, toIso } from "../util/clock.ts";
import type { JsonObject } from "../util/json.ts";
import type { Cell, Row, Values } from "./engine.ts";
import { decoded } from "./tenant-engine.ts";

/**
 * Where tasks are stored. It has four operations and no rules: to use your own store, implement these and run `taskCases`
 * of the conformance suite. All rules are in the task list, so every store behaves the same.
 *
 * A failure of the store itself is a rejection of the same call. Every returned task is the caller's own copy.
 * Shape: callback; the task list waits for every call.
 */
export interface TaskStore {
  /** Throws not_found. */
  get(id: TaskId): Promise<Task>;
  /**
   * Writes the task as version `expectedVersion + 1`, whatever its own version says, and returns the stored task. Comparing
   * and writing are one atomic step, also between processes; a refused swap changes nothing. Expected version 0 inserts.
   * Throws already_exists (0, and the id exists), not_found (not 0, and the id does not exist), concurrent_modification (the
   * stored version is different), and claim_lost or not_claimable if the store checks leases with its own clock.
   */
  compareAndSwap(task: Task, expectedVersion: number, cause?: TaskCause): Promise<Task>;
  /** All tasks, oldest first. */
  list(): Promise<readonly Task[]>;
  /**
   * Optional, for stores that can read a part of their tasks: one page, oldest first. A page may have fewer tasks than
   * requested, even none, and still have a next page, because a store examines a limited number of tasks per page.
   */
  page?(query: TaskPageQuery): Promise<TaskPage>;
  /** Releases what the store holds. May be called again. */
  close(): Promise<void>;
  /**
   * Optional: calls `decide` with all tasks while no one else can write, and makes all of the returned swaps or none.
   * `decide` is synchronous, does not change its argument, and may be called again; its errors are passed on. Throws what
   * the first refused swap would throw.
   */
  transact?(decide: Decide): Promise<readonly Task[]>;
  /** Optional, for databases: operations in one step, with the database's own clock. */
  readonly direct?: DirectTasks;
}

export interface TaskPageQuery {
  readonly status?: TaskStatus;
  /** The `next` of the page before; 0 to begin. */
  readonly after: number;
  readonly limit: number;
}

export interface TaskPage {
  readonly tasks: readonly Task[];
  /** For each task, where the page after it begins. */
  readonly places: readonly number[];
  /** Undefined at the end. */
  readonly next: number | undefined;
}

/**
 * Operations that a database does faster and more safely than a read and a swap: its own clock checks the lease inside the
 * write, so a process that was suspended between reading and writing is refused. There are no rules here either. When it
 * returns undefined, the task list reads and swaps instead and so finds the reason.
 */
export interface DirectTasks {
  /** The time that decides about leases, in epoch milliseconds. */
  now(): Promise<number>;
  /** All of them or none. Throws already_exists. */
  insert(swaps: readonly TaskSwap[]): Promise<readonly Task[]>;
  /** Claims the best pending tasks without open blockers, at most `limit`, best first. No task is claimed twice. */
  claim(terms: ClaimTerms, limit: number): Promise<readonly Task[]>;
  /** Tasks to be updated before they can be claimed: expired leases, and tasks made pending by hand. */
  overdue(limit: number): Promise<readonly Task[]>;
  /** Extends a live claim. */
  renew(claim: ClaimRef, leaseMs: number, actor?: string): Promise<Task | undefined>;
  /** Completes under a live claim. */
  complete(claim: ClaimRef, result: string, actor?: string): Promise<Task | undefined>;
}

/** One claim of one task. */
export interface ClaimRef {
  readonly id: TaskId;
  readonly fence: number;
}

export interface ClaimTerms {
  readonly claimer: string;
  /** The roles of the claimer. Without any it may claim only tasks that require no role. */
  readonly roles?: readonly string[];
  /** How long the claim lasts unless it is renewed. Default: until it is released. */
  readonly leaseMs?: number;
}

export type Decide = (tasks: ReadonlyMap<TaskId, Task>) => readonly TaskSwap[];

export interface TaskSwap {
  readonly task: Task;
  readonly expectedVersion: number;
  readonly cause?: TaskCause;
}

/** What happened and who did it, for a store that writes an audit entry in the same step. Other stores may ignore it. */
export interface TaskCause {
  readonly event: TaskEvent;
  readonly actor: string;
  /** Write only while the lease of the stored claim lasts, by the store's own clock if it has one. Throws claim_lost. */
  readonly underLease?: true;
  /** Write only once the lease of the stored claim is over, judged in the same way. Throws not_claimable. */
  readonly overLease?: true;
  /**
   * How long the claim lasts from the moment of writing. A store with a clock of its own grants the lease by that instead of
   * the times in the task, which were read earlier. A renewal never shortens the lease that is stored.
   */
  readonly leaseMs?: number;
}

/** The actor of a change that names none. */
export const CALLER = "caller";

/** What a swap may do, given the task that is stored now. Throws as `compareAndSwap` says. For authors of stores. */
export function checkSwap(current: Task | undefined, { task, expectedVersion }: TaskSwap): void {
  const { id } = task;
  if (!Number.isSafeInteger(expectedVersion) || expectedVersion < 0) {
    const hint = "Give the version that you have read, or 0 to insert.";
    throw new SallyportError("invalid_input", { what: "expected version", id, hint });
  }
  if (expectedVersion === 0) {
    if (current === undefined) return;
    throw new SallyportError("already_exists", { id, version: current.version });
  }
  if (current === undefined) throw missingTask(id);
  if (current.version !== expectedVersion) {
    const { version } = current;
    throw new SallyportError("concurrent_modification", { id, expectedVersion, version });
  }
}

export function missingTask(id: TaskId): SallyportError {
  return new SallyportError("not_found", { id: String(id), hint: "Check the id and the list." });
}

/** One page of tasks whose place is their number, from 1. For stores that have all tasks in memory. */
export function taskPageFrom(
  all: readonly Task[],
  { status, after, limit }: TaskPageQuery,
): TaskPage {
  const tasks: Task[] = [];
  const places: number[] = [];
  for (let index = after; index < all.length; index += 1) {
    const task = all[index];
    if (task === undefined || (status ?? task.status) !== task.status) continue;
    if (tasks.length === limit) return { tasks, places, next: places.at(-1) };
    tasks.push(task);
    places.push(index + 1);
  }
  return { tasks, places, next: undefined };
}

export const NEVER = fromIso("9999-12-31T23:59:59.999Z");

const OWN_COLUMNS = ["id", "status", "claimed_by", "claimed_at", "completed_at", "result", "fence"];

export function rowOfTask(task: Task): Values {
  const json: JsonObject = { ...taskToJson(task) };
  for (const name of [...OWN_COLUMNS, "version"]) delete json[name];
  // Where it is claimed, the queue has it.
  if (task.status === "claimed") delete json["lease_until"];
  return TASKS.row({ ...task, facts: JSON.stringify(json) });
}

/** Without `dependents`, which are counted elsewhere. */
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

/** Of a task that is in the queue. */
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

/** Both rows belong together. A completed task has no row in the queue; one that was read earlier is outdated. */
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
    claimed_by: holder["claimer"],
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
