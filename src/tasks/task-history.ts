import { SallyportError } from "../model/errors.ts";
import { TASK_LIMITS, type Task, type TaskNote } from "../model/task.ts";
import { toIso } from "../util/clock.ts";

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

export function note(
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
export function noted(task: Task, last: TaskNote): Task {
  const history = [...(task.history ?? []), last];
  if (history.length > TASK_LIMITS.history) {
    history.splice(Math.max(0, history.findIndex(isGivenBack)), 1);
  }
  return { ...task, history };
}

/** A failure must always find its place, so the limit is felt by whoever re-opens: there go one note and the next failure. */
export function checkRoomForFailure({ id, history = [] }: Task): void {
  const lasting = history.filter((one) => !isGivenBack(one)).length;
  if (lasting + 2 <= TASK_LIMITS.history) return;
  const hint = "It failed too often. Add a new task and name this one in its description.";
  throw new SallyportError("payload_too_large", { what: "history", id, hint });
}

export function without(task: Task, fields: readonly (keyof Task)[]): Task {
  return Object.fromEntries(
    Object.entries(task).filter(([field]) => !fields.includes(field as keyof Task)),
  ) as unknown as Task;
}

function isGivenBack({ what }: TaskNote): boolean {
  return what === "released" || what === "expired";
}
