import { systemTimers } from "../util/timers.ts";

const DAY_MS = 24 * 3_600_000;

/**
 * Waits for Ctrl+C, or for whoever runs the process to end it. Keeps the process alive meanwhile: a listener for signals does
 * not, and a worker over a file has nothing else that would.
 */
export async function untilStopped(): Promise<void> {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  while (!stop.signal.aborted) {
    // It rejects only when it was told to stop, which the loop sees.
    await systemTimers.sleep(DAY_MS, stop.signal).catch(() => {});
  }
}
