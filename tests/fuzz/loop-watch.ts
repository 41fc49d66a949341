import { closeSync, openSync, readSync } from "node:fs";
import { createHistogram, monitorEventLoopDelay } from "node:perf_hooks";

export interface Stall {
  /** p99.9 of all turns of the loop. */
  readonly usualMs: number;
  readonly longestMs: number;
}

export interface LoopFigures {
  /** How long the loop was held up, by the clock on the wall. */
  readonly wall: Stall;
  /** The same without the time in which this process waited for a CPU that others had. */
  readonly own: Stall;
}

/** Watches the event loop of this process. The machine may be shared, so delays by other processes are told apart. */
export function watchLoop(): () => LoopFigures {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const own = createHistogram();
  const waiting = waitingClock();
  let lastAt = performance.now();
  let lastWaited = waiting.readMs();
  const timer = setInterval(() => {
    const at = performance.now();
    const waited = waiting.readMs();
    own.record(Math.max(1, Math.round((at - lastAt - (waited - lastWaited)) * 1_000)));
    lastAt = at;
    lastWaited = waited;
  }, 1);
  return () => {
    clearInterval(timer);
    delay.disable();
    waiting.close();
    return {
      wall: { usualMs: delay.percentile(99.9) / 1e6, longestMs: delay.max / 1e6 },
      own: { usualMs: own.percentile(99.9) / 1_000, longestMs: own.max / 1_000 },
    };
  };
}

/** How long the main thread has stood in the kernel's queue for a CPU; 0 where the kernel does not tell. */
function waitingClock(): { readMs(): number; close(): void } {
  const bytes = Buffer.alloc(128);
  let file: number;
  try {
    file = openSync("/proc/self/schedstat", "r");
  } catch {
    return { readMs: () => 0, close: () => {} };
  }
  return {
    readMs() {
      const text = bytes.toString("latin1", 0, readSync(file, bytes, 0, bytes.length, 0));
      return Number(text.split(" ")[1] ?? 0) / 1e6;
    },
    close: () => closeSync(file),
  };
}
