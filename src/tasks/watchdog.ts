import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Task, TaskId } from "../model/task.ts";
import type { TaskStore } from "../store/tasks.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import type { Stuck, StuckQuery, SweepOptions } from "./claim-next.ts";
import type { TaskList } from "./create-task-list.ts";

export interface WatchdogOptions extends StuckQuery, SweepOptions {
  readonly tasks: Pick<TaskList, "sweep" | "findStuck">;
  readonly everyMs: number;
  /** Told of each stuck task once, and again when it is stuck for another reason or after it had moved. Shape: push. */
  readonly onStuck: (stuck: Stuck) => void;
  /** A round that failed; the next one comes all the same. Shape: push. */
  readonly onError: (error: unknown) => void;
  readonly timers?: Timers;
}

/**
 * Frees tasks whose lease is over and reports those that only a person can get going. Any number may run at once, and
 * none is needed for safety: a lease that is over can be claimed without it.
 */
export function startWatchdog(options: WatchdogOptions): { stop(): void } {
  const { tasks, everyMs, claimedForMs, giveUpAfter, onStuck, onError } = options;
  const { timers = systemTimers } = options;
  let told = new Set<string>();
  let stopped = false;
  let cancel = timers.after(everyMs, () => void round());

  async function look(): Promise<void> {
    await tasks.sweep(giveUpAfter === undefined ? {} : { giveUpAfter });
    const found = await tasks.findStuck({ claimedForMs });
    const keys = found.map(({ task, why }) => `${why} ${task.version} ${task.id}`);
    for (const [index, stuck] of found.entries()) {
      if (!stopped && !told.has(keys[index] ?? "")) onStuck(stuck);
    }
    told = new Set(keys);
  }

  async function round(): Promise<void> {
    try {
      await look();
    } catch (error) {
      onError(error);
    }
    if (!stopped) cancel = timers.after(everyMs, () => void round());
  }

  return {
    stop() {
      stopped = true;
      cancel();
    },
  };
}

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

/** Told of every completion after it is stored, once. What it throws is reported and stops nobody. Shape: push. */
export type CompletionObserver = (task: Task) => void | Promise<void>;

/**
 * Observers hang on the store and not on a task list, because a list holds nothing but its store: two lists over one
 * store are the same list, also for who listens. Other processes are not heard; for them there is the feed.
 */
const observers = new WeakMap<TaskStore, Set<CompletionObserver>>();

export function observe(store: TaskStore, observer: CompletionObserver): () => void {
  const known = observers.get(store) ?? new Set();
  observers.set(store, known);
  // The same function may be added twice and is then called twice; each time has its own way to stop.
  const own: CompletionObserver = (task) => observer(task);
  known.add(own);
  return () => {
    known.delete(own);
  };
}

/** Nobody waits for an observer, and none can undo what is stored by throwing. */
export function announce(
  store: TaskStore,
  task: Task,
  onObserverError: (error: unknown) => void,
): void {
  for (const observer of [...(observers.get(store) ?? [])]) {
    try {
      Promise.resolve(observer(structuredClone(task))).catch(onObserverError);
    } catch (error) {
      onObserverError(error);
    }
  }
}
