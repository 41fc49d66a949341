import type { DelegationId } from "../model/delegation.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import type { Port } from "./create-sallyport.ts";
import type { Swept } from "./inbox.ts";
import type { Recovered } from "./recover.ts";

export interface UpkeepOptions {
  readonly port: Pick<Port, "recover" | "interactions" | "delegations">;
  readonly everyMs: number;
  /** Told of every round that found something to do. Shape: push. */
  readonly onRound?: (round: {
    readonly recovered: Recovered;
    readonly swept: Swept;
    /** Delegations whose time was over. */
    readonly ended: readonly DelegationId[];
  }) => void;
  /** A round that failed; the next one comes all the same. Shape: push. */
  readonly onError: (error: unknown) => void;
  readonly timers?: Timers;
}

/**
 * Now and then: goes on with what processes left behind, closes questions that nobody answered in time, escalates those that
 * wait too long, ends delegations whose time is over. Any number of processes may run it at once, and none is needed for safety.
 */
export function startUpkeep(options: UpkeepOptions): { stop(): Promise<void> } {
  const { port, everyMs, onRound, onError, timers = systemTimers } = options;
  let stopped = false;
  let running = Promise.resolve();
  let cancel = timers.after(everyMs, next);

  function next(): void {
    running = round().catch(onError).then(again);
  }

  function again(): void {
    if (!stopped) cancel = timers.after(everyMs, next);
  }

  async function round(): Promise<void> {
    const recovered = await port.recover();
    const swept = await port.interactions.sweep();
    const ended = await port.delegations.sweep();
    const lists = [...Object.values(recovered), ...Object.values(swept), ended];
    if (lists.some((list: readonly unknown[]) => list.length > 0)) {
      onRound?.({ recovered, swept, ended });
    }
  }

  return {
    async stop() {
      stopped = true;
      cancel();
      await running;
    },
  };
}
