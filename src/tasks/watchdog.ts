import { systemTimers, type Timers } from "../util/timers.ts";
import type { Stuck, StuckQuery, SweepOptions } from "./stuck.ts";
import type { TaskList } from "./task-list.ts";

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
