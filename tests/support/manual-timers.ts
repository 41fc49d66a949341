import type { ManualClock } from "../../src/util/clock.ts";
import type { Timers } from "../../src/util/timers.ts";

export interface ManualTimers extends Timers {
  /** Advances the clock by `ms` and runs everything that falls due, in order, each at its own instant. */
  advance(ms: number): Promise<void>;
  /** The number of open waits; a test that ends with some has leaked them. */
  readonly open: number;
}

interface Wait {
  readonly dueAt: number;
  readonly fn: () => void;
}

/** Timers that fire only when the test advances the clock: waiting takes no real time and is deterministic. */
export function manualTimers(clock: ManualClock): ManualTimers {
  const waits = new Set<Wait>();

  function after(ms: number, fn: () => void): () => void {
    const wait = { dueAt: clock.now() + Math.max(0, Math.ceil(ms)), fn };
    waits.add(wait);
    return () => waits.delete(wait);
  }

  function nextDue(until: number): Wait | undefined {
    let first: Wait | undefined;
    // A set keeps insertion order, so of two waits for the same instant the older one runs first.
    for (const wait of waits) {
      if (wait.dueAt <= until && (first === undefined || wait.dueAt < first.dueAt)) first = wait;
    }
    return first;
  }

  return {
    after,
    elapsedMs: () => clock.now(),
    soon: (fn) => void after(0, fn),
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const aborted = () => {
          cancel();
          reject(signal?.reason);
        };
        const cancel = after(ms, () => {
          signal?.removeEventListener("abort", aborted);
          resolve();
        });
        signal?.addEventListener("abort", aborted, { once: true });
      });
    },
    async advance(ms) {
      const until = clock.now() + ms;
      await settle();
      for (let wait = nextDue(until); wait !== undefined; wait = nextDue(until)) {
        waits.delete(wait);
        clock.set(Math.max(clock.now(), wait.dueAt));
        wait.fn();
        await settle();
      }
      clock.set(Math.max(clock.now(), until));
    },
    get open() {
      return waits.size;
    },
  };
}

/** One turn of the real event loop, which lets every ready promise continue. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
