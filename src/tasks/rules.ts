import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";
import { checkName } from "../model/names.ts";
import { TASK_LIMITS, type Task, type TaskId, type TaskNote } from "../model/task.ts";
import type { DecisionStore } from "../store/decisions.ts";
import type { ClaimRef, ClaimTerms, DirectTasks, TaskCause, TaskStore } from "../store/tasks.ts";
import { type Clock, fromIso, systemClock, toIso } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import { errorText } from "../util/error-text.ts";
import type { TaskLinks } from "./add-tasks.ts";
import { findCycle, openBlockers } from "./blockers.ts";
import type { MayComplete } from "./create-task-list.ts";

/**
 * The transitions of a task. Pure: task and time in, next task out, or an error. All stores share these rules, because no
 * store has any. `now` is in epoch milliseconds.
 */

/**
 * The fence of the claim under which a task is written, or "any" for a caller that may end the claims of others. A claim with
 * a lease requires one of the two; a claim without a lease requires neither.
 */
export type Fence = number | "any" | undefined;

/** Why a task cannot be claimed now, undefined when it can. `open` are its blockers that are not completed. */
export function claimObstacle(
  task: Task,
  { roles = [], open, now }: { roles?: readonly string[]; open: readonly TaskId[]; now: number },
): string | undefined {
  if (task.status !== "pending" && !isExpired(task, now)) return `it is ${task.status}`;
  if (task.role !== undefined && !roles.includes(task.role))
    return `it needs the role ${task.role}`;
  if (open.length > 0) return `it waits for ${open.length} other tasks`;
  return undefined;
}

/** The next claim. A claim with an expired lease is taken over in the same step, and its expiry recorded. */
export function claimTask(
  task: Task,
  terms: ClaimTerms,
  { open, now }: { open: readonly TaskId[]; now: number },
): Task {
  const { claimer, leaseMs, roles = [] } = terms;
  const obstacle = claimObstacle(task, { roles, open, now });
  if (obstacle !== undefined) {
    const { id, status } = task;
    throw new SallyportError("not_claimable", { id, status, why: obstacle });
  }
  const before = task.status === "claimed" ? expireTask(task, now) : task;
  const version = task.version + 1;
  return {
    ...freed(before, now),
    status: "claimed",
    claimer,
    claimedAt: toIso(now),
    // The version, unless that was set back by hand: an earlier holder must not become the holder again.
    fence: Math.max(version, (task.fence ?? 0) + 1),
    version,
    ...(leaseMs === undefined ? {} : { leaseUntil: toIso(now + leaseMs) }),
  };
}

export function renewClaim(
  task: Task,
  terms: { fence: Fence; leaseMs: number },
  now: number,
): Task {
  checkHold(task, terms.fence, now);
  if (task.status !== "claimed") throw illegal(task, "renew");
  const wanted = toIso(now + terms.leaseMs);
  // A clock that stepped back must not shorten a lease.
  const leaseUntil =
    task.leaseUntil !== undefined && task.leaseUntil > wanted ? task.leaseUntil : wanted;
  return next(task, { leaseUntil });
}

/** The holder releases the task. */
export function releaseTask(
  task: Task,
  terms: { fence: Fence; reason: string },
  now: number,
): Task {
  checkHold(task, terms.fence, now);
  if (task.status !== "claimed") throw illegal(task, "release");
  return next(freed(noted(task, note("released", task, now, terms.reason)), now), {
    status: "pending",
  });
}

/** The lease has ended. Stored by the first process that sees it, so that no clock can revive the claim. */
export function expireTask(task: Task, now: number): Task {
  if (!isExpired(task, now)) throw illegal(task, "expire");
  return next(freed(noted(task, note("expired", task, now)), now), { status: "pending" });
}

export function completeTask(
  task: Task,
  terms: { fence: Fence; result: string },
  now: number,
): Task {
  checkOpen(task, "complete");
  checkHold(task, terms.fence, now);
  const open = without(task, ["leaseUntil", "failureReason"]);
  return next(open, { status: "completed", result: terms.result, completedAt: toIso(now) });
}

export function failTask(task: Task, terms: { fence: Fence; reason: string }, now: number): Task {
  checkOpen(task, "fail");
  checkHold(task, terms.fence, now);
  const open = noted(without(task, ["leaseUntil"]), note("failed", task, now, terms.reason));
  return next(open, { status: "failed", failureReason: terms.reason });
}

/** Only a failed task, and only on request. Its failures stay in its history. */
export function reopenTask(task: Task, terms: { by: string; reason: string }, now: number): Task {
  if (task.status === "completed") throw completedBefore(task);
  if (task.status !== "failed") throw illegal(task, "reopen");
  checkRoomForFailure(task);
  const fresh = freed(task, now);
  const why = note("reopened", { claimer: terms.by }, now, terms.reason);
  return next(noted(fresh, why), { status: "pending" });
}

/** Links the task. Decisions are added, so that concurrent callers do not erase each other's. */
export function linkTask(task: Task, terms: { fence: Fence; links: TaskLinks }, now: number): Task {
  checkOpen(task, "link");
  checkHold(task, terms.fence, now);
  const decisionIds = [
    ...new Set([...(task.decisionIds ?? []), ...(terms.links.decisionIds ?? [])]),
  ];
  checkNames("decision id", decisionIds, TASK_LIMITS.decisions);
  return next(task, { ...terms.links, decisionIds });
}

export function checkNames(what: string, names: readonly string[], most: number): void {
  if (names.length > most) {
    throw new SallyportError("payload_too_large", { what, length: names.length, most });
  }
  for (const name of names) checkName(what, name);
}

/** Sets the blockers of a pending task. The caller has checked for cycles. */
export function setBlockers(task: Task, blockedBy: readonly TaskId[]): Task {
  if (task.status !== "pending") throw illegal(task, "block");
  return next(task, { blockedBy: [...new Set(blockedBy)] });
}

/** Whether the lease has ended, which includes its last moment. */
export function isExpired({ status, leaseUntil }: Task, now: number): boolean {
  return status === "claimed" && leaseUntil !== undefined && now >= fromIso(leaseUntil);
}

/** Throws claim_lost unless the caller holds the task now. */
export function checkHold(task: Task, fence: Fence, now: number): void {
  if (fence === "any") return;
  const leased = task.status === "claimed" && task.leaseUntil !== undefined;
  if (fence === undefined && !leased) return;
  const holds = task.status === "claimed" && task.fence === fence && !isExpired(task, now);
  if (holds) return;
  const hint =
    fence === undefined
      ? "Give the fence of your claim, or the fence `any` if you may end the claims of others."
      : "Stop working on it: a write now could overwrite the work of the new holder.";
  const { id, status } = task;
  throw new SallyportError("claim_lost", { id, status, fence, current: task.fence, hint });
}

function next(task: Task, change: Partial<Task>): Task {
  return { ...task, ...change, version: task.version + 1 };
}

function checkOpen(task: Task, what: string): void {
  if (task.status === "completed") throw completedBefore(task);
  if (task.status === "failed") throw illegal(task, what);
}

function completedBefore({ id, version }: Task): SallyportError {
  return new SallyportError("already_completed", {
    id,
    version,
    hint: "It keeps its first result.",
  });
}

function illegal({ id, status }: Task, to: string): SallyportError {
  return new SallyportError("illegal_transition", { id, from: status, to });
}

/** Without the fields of an earlier claim or failure; a reason that is in no note yet (reopened by hand) becomes one. */
export function freed(task: Task, now: number): Task {
  const { failureReason, history = [] } = task;
  const known = history.some(({ what, reason }) => what === "failed" && reason === failureReason);
  const kept =
    failureReason === undefined || known
      ? task
      : noted(task, note("failed", task, now, failureReason));
  const gone = [
    "claimer",
    "claimedAt",
    "leaseUntil",
    "failureReason",
    "result",
    "completedAt",
  ] as const;
  return without(kept, gone);
}

function note(
  what: TaskNote["what"],
  { claimer, fence }: Pick<Task, "claimer" | "fence">,
  now: number,
  reason = "",
): TaskNote {
  return definedFields({ at: toIso(now), what, by: claimer, reason: reason || undefined, fence });
}

/** Beyond the limit the oldest release or expiry is dropped, never a failure. */
function noted(task: Task, last: TaskNote): Task {
  const history = [...(task.history ?? []), last];
  if (history.length > TASK_LIMITS.history) {
    history.splice(Math.max(0, history.findIndex(isReleased)), 1);
  }
  return { ...task, history };
}

/** A failure must always fit, so reopening needs space for its own note and for the next failure. */
function checkRoomForFailure({ id, history = [] }: Task): void {
  const lasting = history.filter((one) => !isReleased(one)).length;
  if (lasting + 2 <= TASK_LIMITS.history) return;
  const hint = "It failed too often. Add a new task and name this one in its description.";
  throw new SallyportError("payload_too_large", { what: "history", id, hint });
}

function without(task: Task, fields: readonly (keyof Task)[]): Task {
  return Object.fromEntries(
    Object.entries(task).filter(([field]) => !fields.includes(field as keyof Task)),
  ) as unknown as Task;
}

function isReleased({ what }: TaskNote): boolean {
  return what === "released" || what === "expired";
}

interface TiesOptions {
  readonly decisions: Pick<DecisionStore, "get">;
  /** Whether the promise of this delegation is met; without it a task with a delegation cannot be completed. Shape: callback. */
  readonly isFulfilled?: (delegationId: string) => Promise<boolean> | boolean;
}

/**
 * For `mayComplete`: a task may be completed when all its decisions are executed and the promise of its delegation is met.
 * Both are final, so the answer cannot become wrong.
 */
export function tiesFulfilled({ decisions, isFulfilled }: TiesOptions): MayComplete {
  return async ({ decisionIds = [], delegationId }: Task) => {
    for (const id of decisionIds) {
      const { state } = await decisions.get(id);
      if (state !== "executed") return `Its decision ${id} is ${state}, not executed.`;
    }
    if (delegationId === undefined) return true;
    if (isFulfilled === undefined) {
      return `It is unknown whether the promise of its delegation ${delegationId} is fulfilled.`;
    }
    const fulfilled = await isFulfilled(delegationId);
    return fulfilled === true || `The promise of its delegation ${delegationId} is not fulfilled.`;
  };
}

const ROUNDS = 100;

type Now = () => number | Promise<number>;

/** Claims up to `limit` of the best available tasks. No two callers get the same one. */
export async function claimBest(
  store: TaskStore,
  terms: ClaimTerms,
  limit: number,
  now: Now,
): Promise<readonly Task[]> {
  if (store.direct !== undefined) return claimDirectly(store, store.direct, terms, limit);
  if (store.transact === undefined) return claimByTrying(store, terms, limit, now);
  const at = await now();
  return store.transact((tasks) => {
    const best = claimables(tasks, terms, at).slice(0, limit);
    return best.map((task) => ({
      task: claimTask(task, terms, { open: [], now: at }),
      expectedVersion: task.version,
      cause: claimedBy(terms, task),
    }));
  });
}

/**
 * The store claims pending tasks. Expired leases are first recorded by the rules, which makes their tasks pending and keeps
 * their former holders in the history.
 */
async function claimDirectly(
  store: TaskStore,
  direct: DirectTasks,
  terms: ClaimTerms,
  limit: number,
): Promise<readonly Task[]> {
  await putInOrder(store, await direct.overdue(ROUNDS));
  for (let round = 0; round < ROUNDS; round += 1) {
    const claimed = await direct.claim(terms, limit);
    if (claimed.length > 0) return claimed;
    const overdue = await direct.overdue(ROUNDS);
    if (overdue.length === 0) return [];
    await putInOrder(store, overdue);
  }
  throw outrun();
}

/**
 * With the four operations alone. A caller that loses a task to another tries the next best one, and reads the list again when
 * those are used up, so no caller gets nothing while a task is left.
 */
async function claimByTrying(
  store: TaskStore,
  terms: ClaimTerms,
  limit: number,
  now: Now,
): Promise<readonly Task[]> {
  const claimed: Task[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const tasks = new Map((await store.list()).map((task) => [task.id, task]));
    const candidates = claimables(tasks, terms, await now());
    for (const task of candidates) {
      if (claimed.length === limit) return claimed;
      try {
        const next = claimTask(task, terms, { open: [], now: await now() });
        claimed.push(await store.compareAndSwap(next, task.version, claimedBy(terms, task)));
      } catch (error) {
        if (!isSallyportError(error, "concurrent_modification")) throw error;
      }
    }
    if (candidates.length === 0 || claimed.length > 0) return claimed;
  }
  throw outrun();
}

/** Why `task` changes as it is claimed. A claim that has run out is judged once more as it is written. */
export function claimedBy({ claimer, leaseMs }: ClaimTerms, { status }: Task): TaskCause {
  return {
    event: "task.claimed",
    actor: claimer,
    ...(leaseMs === undefined ? {} : { leaseMs }),
    ...(status === "claimed" ? { overLease: true } : {}),
  };
}

/** Highest priority first, then by age, the order of the list. */
function claimables(
  tasks: ReadonlyMap<TaskId, Task>,
  { roles = [] }: ClaimTerms,
  now: number,
): readonly Task[] {
  const isFree = (task: Task) =>
    claimObstacle(task, { roles, open: openBlockers(task, tasks), now }) === undefined;
  const urgency = ({ priority = 0 }: Task) => priority;
  return [...tasks.values()].filter(isFree).toSorted((a, b) => urgency(b) - urgency(a));
}

function outrun(): SallyportError {
  const hint = "Other workers were faster a hundred times in a row. Try again.";
  return new SallyportError("store_busy", { hint });
}

/**
 * Evaluated before each call of a session that works under a claim: no finding while the claim is live, a hard denial when its
 * fence has changed or its lease has ended, or when that is unknown. It saves the agent work; the guarantee is `claimHold`,
 * which checks again in the transaction that starts the effect, if tasks and operations share a store.
 */
export async function checkClaim(
  store: Pick<TaskStore, "get" | "direct">,
  claim: ClaimRef,
  clock: Clock = systemClock,
): Promise<readonly Finding[]> {
  try {
    const task = await store.get(claim.id);
    checkHold(task, claim.fence, (await store.direct?.now()) ?? clock.now());
    return [];
  } catch (error) {
    return [denied(claim, reasonOf(error))];
  }
}

function reasonOf(error: unknown): string {
  if (isSallyportError(error, "claim_lost"))
    return "its lease has ended, or another worker holds it";
  if (isSallyportError(error, "not_found")) return "there is no such task";
  return `it is unknown whether you still hold it (${errorText(error)})`;
}

function denied({ id }: ClaimRef, why: string): Finding {
  const message = `Not executed: you work on task ${id}, and ${why}. Stop working on it and claim another task.`;
  return { severity: "hard-deny", policy: "task.claim", message };
}

/** A task that will not progress by itself, or has not for long. */
export interface Stuck {
  readonly task: Task;
  readonly why:
    | "lease_over"
    | "claimed_long"
    | "blocked_by_failed"
    | "blocked_by_missing"
    | "blocked_in_a_circle";
}

export interface StuckQuery {
  /** A claim of at least this age is reported, even if its lease is renewed. */
  readonly claimedForMs: number;
}

export interface SweepOptions {
  /** Fails a task whose lease has expired this often since it was last reopened: it probably crashes its workers. */
  readonly giveUpAfter?: number;
}

/** The actor that records expired leases. */
const SWEEPER = "watchdog";

export function findStuck(
  tasks: readonly Task[],
  { claimedForMs }: StuckQuery,
  now: number,
): readonly Stuck[] {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const circle = new Set(findCycle(tasks.filter(({ status }) => status === "pending")));
  const why = (task: Task): Stuck["why"] | undefined => {
    if (isExpired(task, now)) return "lease_over";
    if (task.status === "claimed") {
      const since = task.claimedAt === undefined ? 0 : fromIso(task.claimedAt);
      return now - since >= claimedForMs ? "claimed_long" : undefined;
    }
    if (task.status !== "pending") return undefined;
    if (circle.has(task.id)) return "blocked_in_a_circle";
    const blockers = (task.blockedBy ?? []).map((id) => byId.get(id));
    if (blockers.some((blocker) => blocker === undefined)) return "blocked_by_missing";
    const isFailed = blockers.some((blocker) => blocker?.status === "failed");
    return isFailed ? "blocked_by_failed" : undefined;
  };
  return tasks.flatMap((task) => {
    const reason = why(task);
    return reason === undefined ? [] : [{ task, why: reason }];
  });
}

export async function sweepTasks(
  store: TaskStore,
  { giveUpAfter = Number.POSITIVE_INFINITY }: SweepOptions,
  now: () => Promise<number>,
): Promise<readonly Task[]> {
  const { direct } = store;
  if (direct === undefined) return putInOrder(store, await store.list(), await now(), giveUpAfter);
  const changed: Task[] = [];
  for (;;) {
    const overdue = await direct.overdue(OVERDUE_PAGE);
    if (overdue.length === 0) return changed;
    changed.push(...(await putInOrder(store, overdue, await now(), giveUpAfter)));
  }
}
const OVERDUE_PAGE = 1_000;

/**
 * Records expired leases, and cleans up tasks that were set to pending by hand. Without a time the store has judged already.
 * Returns the tasks whose lease it ended.
 */
async function putInOrder(
  store: TaskStore,
  tasks: readonly Task[],
  now?: number,
  giveUpAfter?: number,
): Promise<readonly Task[]> {
  const changed: Task[] = [];
  for (const task of tasks) {
    const over = task.leaseUntil === undefined ? 0 : fromIso(task.leaseUntil);
    const at = store.direct === undefined ? (now ?? 0) : Math.max(now ?? 0, over);
    if (isExpired(task, at)) {
      const swept = await writeExpiry(store, task, at, giveUpAfter);
      if (swept !== undefined) changed.push(swept);
    } else if (store.direct !== undefined && task.status === "pending") {
      const cause = { event: "task.changed", actor: SWEEPER } as const;
      await unlessOutrun(() => store.compareAndSwap(freed(task, at), task.version, cause));
    }
  }
  return changed;
}

/** Undefined when another process wrote first, which has seen the same or something newer, or the lease is live after all. */
export async function writeExpiry(
  store: TaskStore,
  task: Task,
  now: number,
  giveUpAfter = Number.POSITIVE_INFINITY,
): Promise<Task | undefined> {
  const expired = expireTask(task, now);
  const times = expiriesOf(expired);
  const reason = `Its lease expired ${times} times.`;
  const next = times < giveUpAfter ? expired : failTask(expired, { fence: "any", reason }, now);
  const event = next === expired ? "task.expired" : "task.failed";
  const cause = { event, actor: SWEEPER, overLease: true } as const;
  return unlessOutrun(() => store.compareAndSwap(next, task.version, cause));
}

async function unlessOutrun(swap: () => Promise<Task>): Promise<Task | undefined> {
  try {
    return await swap();
  } catch (error) {
    if (isSallyportError(error, "concurrent_modification")) return undefined;
    if (isSallyportError(error, "not_claimable")) return undefined;
    throw error;
  }
}

function expiriesOf({ history = [] }: Task): number {
  const since = history.findLastIndex(({ what }) => what === "reopened") + 1;
  return history.slice(since).filter(({ what }) => what === "expired").length;
}
