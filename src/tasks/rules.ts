import { SallyportError } from "../model/errors.ts";
import { TASK_LIMITS, type Task, type TaskId, type TaskNote } from "../model/task.ts";
import type { DecisionStore } from "../store/decisions.ts";
import type { ClaimTerms } from "../store/tasks.ts";
import { fromIso, toIso } from "../util/clock.ts";
import { checkNames, type TaskLinks } from "./add-tasks.ts";
import type { MayComplete } from "./create-task-list.ts";

/**
 * What may happen to a task. Pure: the task and the time go in, the next task comes out, or the reason why not is thrown.
 * Every store gets the same rules, because no store has any. `now` is in epoch milliseconds.
 */

/**
 * The fence of the claim under which something is written, or "any" for whoever may end the claims of others. A claim
 * with a lease wants one of the two; a plain claim, as ever, does not ask who ends it.
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

/** The next claim. A claim whose lease is over is taken over in the same step, and remembered as expired. */
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
    // The version, unless somebody set that back by hand: whoever held it last must not hold it again.
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
  // A clock that stepped back must not shorten a lease that was promised.
  const leaseUntil =
    task.leaseUntil !== undefined && task.leaseUntil > wanted ? task.leaseUntil : wanted;
  return next(task, { leaseUntil });
}

/** The worker gives the task back. */
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

/** The lease ran out. Written down by the first who sees it, so that no clock can bring the claim back. */
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

/** Only a failed task, and only when somebody says so. What went wrong stays in its history. */
export function reopenTask(task: Task, terms: { by: string; reason: string }, now: number): Task {
  if (task.status === "completed") throw completedBefore(task);
  if (task.status !== "failed") throw illegal(task, "reopen");
  checkRoomForFailure(task);
  const fresh = freed(task, now);
  const why = note("reopened", { claimer: terms.by }, now, terms.reason);
  return next(noted(fresh, why), { status: "pending" });
}

/** Ties the task to what it belongs to. Decisions are added, so that two who link do not erase each other's. */
export function linkTask(task: Task, terms: { fence: Fence; links: TaskLinks }, now: number): Task {
  checkOpen(task, "link");
  checkHold(task, terms.fence, now);
  const decisionIds = [
    ...new Set([...(task.decisionIds ?? []), ...(terms.links.decisionIds ?? [])]),
  ];
  checkNames("decision id", decisionIds, TASK_LIMITS.decisions);
  return next(task, { ...terms.links, decisionIds });
}

/** What a pending task waits for. Whoever calls has made sure that nobody waits in a circle. */
export function setBlockers(task: Task, blockedBy: readonly TaskId[]): Task {
  if (task.status !== "pending") throw illegal(task, "block");
  return next(task, { blockedBy: [...new Set(blockedBy)] });
}

/** The lease of the claim is over. It is so from its last moment on, not only after it. */
export function isExpired({ status, leaseUntil }: Task, now: number): boolean {
  return status === "claimed" && leaseUntil !== undefined && now >= fromIso(leaseUntil);
}

/** Throws claim_lost unless whoever writes holds the task now. */
export function checkHold(task: Task, fence: Fence, now: number): void {
  if (fence === "any") return;
  const leased = task.status === "claimed" && task.leaseUntil !== undefined;
  if (fence === undefined && !leased) return;
  const holds = task.status === "claimed" && task.fence === fence && !isExpired(task, now);
  if (holds) return;
  const hint =
    fence === undefined
      ? "Show the fence of your claim. Who may end the claim of somebody else says so with the fence `any`."
      : "Stop working on it: what you would write now could overwrite somebody else's work.";
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
  return new SallyportError("already_completed", { id, version, hint: "The first result stands." });
}

function illegal({ id, status }: Task, to: string): SallyportError {
  return new SallyportError("illegal_transition", { id, from: status, to });
}

/** Without the traces of an earlier claim or failure; a reason that no note holds yet (re-opened by hand) becomes one. */
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
  return {
    at: toIso(now),
    what,
    ...(claimer === undefined ? {} : { by: claimer }),
    ...(reason === "" ? {} : { reason }),
    ...(fence === undefined ? {} : { fence }),
  };
}

/** A task that is given back again and again forgets the oldest of those times, never a failure before them. */
function noted(task: Task, last: TaskNote): Task {
  const history = [...(task.history ?? []), last];
  if (history.length > TASK_LIMITS.history) {
    history.splice(Math.max(0, history.findIndex(isGivenBack)), 1);
  }
  return { ...task, history };
}

/** A failure must always find its place, so the limit is felt by whoever re-opens: there go one note and the next failure. */
function checkRoomForFailure({ id, history = [] }: Task): void {
  const lasting = history.filter((one) => !isGivenBack(one)).length;
  if (lasting + 2 <= TASK_LIMITS.history) return;
  const hint = "It failed too often. Add a new task and name this one in its description.";
  throw new SallyportError("payload_too_large", { what: "history", id, hint });
}

function without(task: Task, fields: readonly (keyof Task)[]): Task {
  return Object.fromEntries(
    Object.entries(task).filter(([field]) => !fields.includes(field as keyof Task)),
  ) as unknown as Task;
}

function isGivenBack({ what }: TaskNote): boolean {
  return what === "released" || what === "expired";
}

export interface TiesOptions {
  readonly decisions: Pick<DecisionStore, "get">;
  /**
   * Whether what was promised for this delegation is fulfilled; only `true` is a yes. Without it, a task with a delegation
   * cannot be completed. Shape: callback.
   */
  readonly isFulfilled?: (delegationId: string) => Promise<boolean> | boolean;
}

/**
 * For `mayComplete`: a task is done when what it is tied to is done, that is when all its decisions are executed and the
 * promise of its delegation is fulfilled. Both are final, so what was true when it was looked at stays true.
 */
export function tiesFulfilled({ decisions, isFulfilled }: TiesOptions): MayComplete {
  return async ({ decisionIds = [], delegationId }: Task) => {
    for (const id of decisionIds) {
      const { state } = await decisions.get(id);
      if (state !== "executed") return `Its decision ${id} is ${state}, not executed.`;
    }
    if (delegationId === undefined) return true;
    if (isFulfilled === undefined) {
      return `Nobody can tell whether the promise of its delegation ${delegationId} is fulfilled.`;
    }
    const fulfilled = await isFulfilled(delegationId);
    return fulfilled === true || `The promise of its delegation ${delegationId} is not fulfilled.`;
  };
}
