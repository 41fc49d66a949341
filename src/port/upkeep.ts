import type { DelegationId } from "../model/delegation.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import type { Port } from "./create-sallyport.ts";
import type { Swept } from "./inbox.ts";
import type { Recovered } from "./recover.ts";

/** What one round found. */
export interface UpkeepRound {
  readonly recovered: Recovered;
  readonly swept: Swept;
  /** Delegations whose time was over. */
  readonly ended: readonly DelegationId[];
}

export interface UpkeepOptions {
  readonly port: Pick<Port, "recover" | "interactions" | "delegations">;
  readonly everyMs: number;
  /** Told of every round that found something to do; the parts that had no round are empty. Shape: push. */
  readonly onRound?: (round: UpkeepRound) => void;
  /** A round that failed; the next one comes all the same. Shape: push. */
  readonly onError: (error: unknown) => void;
  readonly timers?: Timers;
}

/**
 * Now and then: goes on with what processes left behind, closes questions that nobody answered in time, escalates those that
 * wait too long, ends delegations whose time is over. Each of the three has rounds of its own, so that a target that hangs
 * delays no deadline. Any number of processes may run it at once, and none is needed for safety.
 */
export function startUpkeep(options: UpkeepOptions): { stop(): Promise<void> } {
  const { port, onRound } = options;
  function tell(found: Partial<UpkeepRound>): void {
    const lists = Object.values(found).flatMap((part) =>
      Array.isArray(part) ? [part] : Object.values(part as object).filter(Array.isArray),
    );
    if (lists.some((list: readonly unknown[]) => list.length > 0))
      onRound?.({ ...NOTHING, ...found });
  }
  const loops = [
    startLoop(options, async () => tell({ recovered: await port.recover() })),
    startLoop(options, async () => tell({ swept: await port.interactions.sweep() })),
    startLoop(options, async () => tell({ ended: await port.delegations.sweep() })),
  ];
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
    },
  };
}

const NOTHING: UpkeepRound = {
  recovered: { operations: [], decisions: [], proposals: [], left: [] },
  swept: { expired: [], askedAgain: [], escalated: [] },
  ended: [],
};

/** The next round begins so long after the last one has ended. */
function startLoop(
  { everyMs, onError, timers = systemTimers }: UpkeepOptions,
  round: () => Promise<void>,
): { stop(): Promise<void> } {
  let stopped = false;
  let running = Promise.resolve();
  let cancel = timers.after(everyMs, next);

  function next(): void {
    running = round().catch(onError).then(again);
  }

  function again(): void {
    if (!stopped) cancel = timers.after(everyMs, next);
  }

  return {
    async stop() {
      stopped = true;
      cancel();
      await running;
    },
  };
}
