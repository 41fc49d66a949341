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
import { decoded } from "./readable.ts";

/**
 * Where tasks lie. Four operations and no rule: who has a store of their own implements these and runs `taskCases` of
 * the conformance suite. All rules are in the task list, so every store behaves alike.
 *
 * A failure of the store itself is a rejection of the same call. Every task handed out is the caller's own copy.
 * Shape: callback; the task list waits for every call.
 */
export interface TaskStore {
  /** Throws not_found. */
  get(id: TaskId): Promise<Task>;
  /**
   * Writes the task as version `expectedVersion + 1`, whatever its own version says, and gives back what was stored.
   * Comparing and writing are one atomic step, also between processes; a refused swap leaves everything as it was.
   * Expected version 0 inserts. Throws already_exists (0, and the id is there), not_found (another one, and it is not),
   * concurrent_modification (the stored version is another), and claim_lost where it judges leases by a clock of its own.
   */
  compareAndSwap(task: Task, expectedVersion: number, cause?: TaskCause): Promise<Task>;
  /** All tasks, oldest first. */
  list(): Promise<readonly Task[]>;
  /**
   * Not needed, for stores that can read a part of their tasks: one page, oldest first. It may hold fewer tasks than asked
   * for, also none, and still have a next one: a store looks at so many tasks at a time and no more.
   */
  page?(query: TaskPageQuery): Promise<TaskPage>;
  /** Releases what the store holds. May be called again. */
  close(): Promise<void>;
  /**
   * Not needed, for stores that can: decides by all tasks while nobody else writes, and makes all of these swaps or none.
   * `decide` answers at once, changes nothing it is given, and may be asked again; what it throws comes out. Throws what
   * the first refused swap would.
   */
  transact?(decide: Decide): Promise<readonly Task[]>;
  /** Not needed, for databases: what they do in one step, and by a clock of their own. */
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
  /** By task: where a page that ends with it goes on. */
  readonly places: readonly number[];
  /** Undefined at the end. */
  readonly next: number | undefined;
}

/**
 * What a database does faster than reading and swapping, and more surely: its own clock judges the lease inside the write,
 * so that nobody who was asleep between looking and writing gets through. No rule is in here either. What it will not do it
 * answers with undefined, and then the task list asks the long way and learns why.
 */
export interface DirectTasks {
  /** The time that decides about leases, in epoch milliseconds. */
  now(): Promise<number>;
  /** All of them or none. Throws already_exists. */
  insert(swaps: readonly TaskSwap[]): Promise<readonly Task[]>;
  /** Claims the best pending tasks that nothing holds back, at most `limit`, best first. Nobody else gets the same. */
  claim(terms: ClaimTerms, limit: number): Promise<readonly Task[]>;
  /**
   * What must be put in order before it can be claimed: leases that are over, and tasks that somebody made pending by hand
   * and left with traces of what was. `thorough` looks at all there is; otherwise it may know that it need not look.
   */
  overdue(limit: number, thorough: boolean): Promise<readonly Task[]>;
  /** Makes a live claim longer. */
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
  /** What the claimer may do. Without any it may claim only tasks that ask for no role. */
  readonly roles?: readonly string[];
  /** How long the claim lasts unless it is renewed. Without it, until somebody ends it. */
  readonly leaseMs?: number;
}

export type Decide = (tasks: ReadonlyMap<TaskId, Task>) => readonly TaskSwap[];

export interface TaskSwap {
  readonly task: Task;
  readonly expectedVersion: number;
  readonly cause?: TaskCause;
}

/** What happened and who did it, for a store that writes a trail in the same step. The others need not look at it. */
export interface TaskCause {
  readonly event: TaskEvent;
  readonly actor: string;
  /** Write only while the lease of the stored claim lasts, by the store's own clock if it has one. Throws claim_lost. */
  readonly underLease?: true;
}

/** Whoever did not say who it is. */
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

/** One page of tasks whose place is their number, from 1. For stores that have all of them at hand. */
export function pageFrom(all: readonly Task[], { status, after, limit }: TaskPageQuery): TaskPage {
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

const OWN_COLUMNS = ["id", "status", "claimer", "claimed_at", "completed_at", "result", "fence"];

export function rowOfTask(task: Task): Values {
  const json: JsonObject = { ...taskToJson(task) };
  for (const name of [...OWN_COLUMNS, "version"]) delete json[name];
  // Where it is claimed, the queue has it.
  if (task.status === "claimed") delete json["lease_until"];
  return TASKS.row({ ...task, facts: JSON.stringify(json) });
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
