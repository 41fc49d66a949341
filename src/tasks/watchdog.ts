import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Task, TaskId } from "../model/task.ts";
import type { TaskStore } from "../store/tasks.ts";
import { definedFields } from "../util/defined-fields.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import type { TaskList } from "./create-task-list.ts";
import type { Stuck, StuckQuery, SweepOptions } from "./rules.ts";

export interface WatchdogOptions extends StuckQuery, SweepOptions {
  readonly tasks: Pick<TaskList, "sweep" | "findStuck">;
  readonly everyMs: number;
  /** Called once for each stuck task, and again for another reason or after a change of the task. Shape: push. */
  readonly onStuck: (stuck: Stuck) => void;
  /** A round has failed; the next one runs all the same. Shape: push. */
  readonly onError: (error: unknown) => void;
  readonly timers?: Timers;
}

/**
 * Frees tasks whose lease has ended and reports those that need a person. Any number may run concurrently, and none is needed
 * for safety: a task with an expired lease can be claimed without it.
 */
export function startWatchdog(options: WatchdogOptions): { stop(): void } {
  const { tasks, everyMs, claimedForMs, giveUpAfter, onStuck, onError } = options;
  const { timers = systemTimers } = options;
  let reported = new Set<string>();
  let stopped = false;
  let cancel = timers.after(everyMs, () => void round());

  async function look(): Promise<void> {
    await tasks.sweep(definedFields({ giveUpAfter }));
    const found = await tasks.findStuck({ claimedForMs });
    const keys = found.map(({ task, why }) => `${why} ${task.version} ${task.id}`);
    for (const [index, stuck] of found.entries()) {
      if (!stopped && !reported.has(keys[index] ?? "")) onStuck(stuck);
    }
    reported = new Set(keys);
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

interface HeartbeatOptions {
  readonly tasks: Pick<TaskList, "renew">;
  readonly id: TaskId;
  readonly fence: number;
  /** As in the claim, which must have been made just before. */
  readonly leaseMs: number;
  readonly timers?: Timers;
}

interface Heartbeat {
  /** Aborted when the claim is lost, or may be: the worker must stop. The reason is claim_lost or the list's error. */
  readonly signal: AbortSignal;
  /** Ends the renewals, not the claim. */
  stop(): void;
}

/**
 * Renews a claim three times per lease. While the store does not answer it retries until the known lease ends, counted from
 * before the request: after that another worker may hold the task, so this one must stop.
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

/** A concurrent change or an unavailable store is worth a retry. Any other error ends the claim. */
function isPassing(error: unknown): boolean {
  if (!isSallyportError(error)) return true;
  return (
    error instanceof SallyportError &&
    (error.retry === "after_reread" || error.retry === "safe" || error.code === "commit_unknown")
  );
}

/** Called once for each completion, after it is stored. Its errors are reported and have no effect. Shape: push. */
export type CompletionObserver = (task: Task) => void | Promise<void>;

/**
 * Observers belong to the store and not to a task list, because a list has no state but its store: two lists over one store
 * are the same list. For completions in other processes there is the event feed.
 */
const observers = new WeakMap<TaskStore, Set<CompletionObserver>>();

export function observe(store: TaskStore, observer: CompletionObserver): () => void {
  const known = observers.get(store) ?? new Set();
  observers.set(store, known);
  // The same function may be added twice and is then called twice; each is stopped separately.
  const own: CompletionObserver = (task) => observer(task);
  known.add(own);
  return () => {
    known.delete(own);
  };
}

/** Observers are not awaited, and their errors do not affect the completion. */
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
