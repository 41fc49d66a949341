import type { Timers } from "./timers.ts";

/** Keeps a lease until the function that comes back is called. A renewal that fails for a moment is tried again; only a clear no ends it. */
export function renewEvery(ms: number, timers: Timers, renew: () => Promise<boolean>): () => void {
  let cancel = (): void => {};
  let stopped = false;
  const next = (): void => {
    cancel = timers.after(ms, () => {
      renew().then(
        (held) => held && !stopped && next(),
        () => !stopped && next(),
      );
    });
  };
  next();
  return () => {
    stopped = true;
    cancel();
  };
}
