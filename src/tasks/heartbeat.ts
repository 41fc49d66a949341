import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { TaskId } from "../model/task.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import type { TaskList } from "./task-list.ts";

export interface HeartbeatOptions {
  readonly tasks: Pick<TaskList, "renew">;
  readonly id: TaskId;
  readonly fence: number;
  /** As in the claim, which must have been made just now. */
  readonly leaseMs: number;
  readonly timers?: Timers;
}

export interface Heartbeat {
  /** Aborted when the claim is lost, or may be: the worker must stop. The reason is claim_lost or what the list said. */
  readonly signal: AbortSignal;
  /** Ends the renewals, not the claim. */
  stop(): void;
}

/**
 * Renews a claim three times per lease. When the store does not answer it keeps trying, but only as long as the lease
 * that it knows of lasts, counted from before it asked: after that somebody else may hold the task, and a worker that cannot know must stop.
 */
export function startHeartbeat(options: HeartbeatOptions): Heartbeat {
  const { tasks, id, fence, leaseMs, timers = systemTimers } = options;
  const lost = new AbortController();
  let stopped = false;
  let cancelEnd = armEnd();
  let cancelBeat = timers.after(leaseMs / 3, () => void beat());

  function armEnd(): () => void {
    return timers.after(leaseMs, () => {
      const hint = "The store did not answer in time, so the lease may be over.";
      giveUp(new SallyportError("claim_lost", { id, fence, hint }));
    });
  }

  function stop(): void {
    stopped = true;
    cancelEnd();
    cancelBeat();
  }

  function giveUp(reason: unknown): void {
    if (stopped) return;
    stop();
    lost.abort(reason);
  }

  async function beat(): Promise<void> {
    const cancelOld = cancelEnd;
    const cancelNew = armEnd();
    let wait = leaseMs / 3;
    try {
      await tasks.renew({ id, fence, leaseMs });
      cancelOld();
      cancelEnd = cancelNew;
    } catch (error) {
      cancelNew();
      if (!isPassing(error)) return giveUp(error);
      wait = leaseMs / 10;
    }
    if (stopped) cancelNew();
    else cancelBeat = timers.after(wait, () => void beat());
  }

  return { signal: lost.signal, stop };
}

/** Somebody linked something meanwhile, or the store is away: worth another try. Anything else means that it is over. */
function isPassing(error: unknown): boolean {
  if (!isSallyportError(error)) return true;
  return (
    error instanceof SallyportError &&
    (error.retry === "after_reread" || error.retry === "safe" || error.code === "commit_unknown")
  );
}
