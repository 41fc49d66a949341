import type { DelegationId } from "../model/delegation.ts";
import type { DelegationStore } from "../store/delegations.ts";
import { errorText } from "../util/error-text.ts";
import type { Timers } from "../util/timers.ts";

/** Tells whoever works for a delegation when it is over. */
export interface Watch {
  /** Aborted when the delegation or anything it hangs on has ended or run out of time, or when nobody can tell. */
  readonly signal: AbortSignal;
  /** Stops watching; the signal stays as it is. */
  stop(): void;
}

const EVERY_MS = 250;
/** For so long a store may fail before the one who works is stopped: nothing can be started meanwhile. */
const PATIENCE = 8;

export function watchDelegation(
  id: DelegationId,
  delegations: Pick<DelegationStore, "whyOver">,
  timers: Timers,
): Watch {
  const over = new AbortController();
  let cancel = () => {};
  let isStopped = false;
  let failures = 0;

  async function look(): Promise<void> {
    const why = await lookOnce();
    if (isStopped) return;
    if (why !== undefined) over.abort(new Error(why));
    else cancel = timers.after(EVERY_MS, () => void look());
  }

  async function lookOnce(): Promise<string | undefined> {
    try {
      const why = await delegations.whyOver(id);
      failures = 0;
      return why;
    } catch (error) {
      failures += 1;
      return failures < PATIENCE
        ? undefined
        : `The delegation cannot be looked up: ${errorText(error)}`;
    }
  }

  void look();
  return {
    signal: over.signal,
    stop() {
      isStopped = true;
      cancel();
    },
  };
}
