import { stopwatch } from "./clock.ts";

/** The only way to wait, so that a simulation can decide what happens when. Shape: callback. */
export interface Timers {
  /** Resolves after `ms`, or rejects with the signal's reason as soon as it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Runs `fn` in the next turn of the event loop, after input and output had their chance. */
  soon(fn: () => void): void;
  /** How long this process has run, in milliseconds. Never steps back, unlike a clock; only differences mean anything. */
  elapsedMs(): number;
  /** Runs `fn` once after `ms` unless the returned function is called first. The process may end before, unless it is held. */
  after(ms: number, fn: () => void, hold?: Hold): () => void;
}

export type Hold = "keeps the process alive" | "lets the process end";

export const systemTimers: Timers = {
  sleep(ms, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const cancel = startTimer(ms, done, "keeps the process alive");
      signal?.addEventListener("abort", aborted, { once: true });
      function done(): void {
        signal?.removeEventListener("abort", aborted);
        resolve();
      }
      function aborted(): void {
        cancel();
        reject(signal?.reason);
      }
    });
  },
  soon(fn) {
    setImmediate(fn);
  },
  elapsedMs: () => stopwatch.now(),
  after(ms, fn, hold = "lets the process end") {
    return startTimer(ms, fn, hold);
  },
};

/** Holds up the whole process. Only for the moment of starting, where nothing else runs yet. */
export function sleepSync(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Says that work was given up because its time was over; named as the platform names it. */
export class TimeoutError extends Error {
  override readonly name = "TimeoutError";
  readonly ms: number;

  constructor(ms: number) {
    super(`No answer within ${ms} ms.`);
    this.ms = ms;
  }
}

/** What somebody at work is handed, to see that the answer is not wanted any more. */
export interface Stop {
  readonly signal: AbortSignal;
}

/** A reason of the caller's own: it is handed the way to give up, and ended when there is nothing left to give up. */
export type Watch = (giveUp: (reason: unknown) => void) => () => void;

/**
 * Gives what `work` gives, unless `ms` pass or `signal` is aborted first. Then the signal that `work` was handed is
 * aborted and the promise rejects at once, with a TimeoutError or the reason of `signal`, whether `work` listens or
 * not. What it answers later is dropped: a caller that has moved on must not be moved by it.
 */
export async function withDeadline<Result>(
  work: (signal: AbortSignal) => Result | PromiseLike<Result>,
  ms: number,
  timers: Timers,
  signal?: AbortSignal,
): Promise<Result> {
  return inTime((stop) => work(stop.signal), ms, timers, signal);
}

/**
 * The same for who waits in any case: what is answered at once is handed on at once, and what is thrown at once is thrown.
 * Most answer at once, and then a deadline, a signal and a promise would cost more than the answer.
 */
export function inTime<Result>(
  work: (stop: Stop) => Result | PromiseLike<Result>,
  ms: number,
  timers: Timers,
  signal?: AbortSignal,
  watch?: Watch,
): Result | Promise<Result> {
  signal?.throwIfAborted();
  const stop = new Stopper();
  const working = work({
    // Its own, so that a copy made with `...` has the signal as well.
    get signal() {
      return stop.signal;
    },
  });
  if (!isPromiseLike(working)) return working;
  return untilGivenUp(working, stop, { ms, timers, signal, watch });
}

/** Makes its controller when somebody asks for the signal: of those who answer at once hardly anybody does. */
class Stopper {
  #made: AbortController | undefined;

  get signal(): AbortSignal {
    this.#made ??= new AbortController();
    return this.#made.signal;
  }

  abort(reason: unknown): void {
    this.#made ??= new AbortController();
    this.#made.abort(reason);
  }
}

interface Reasons {
  readonly ms: number;
  readonly timers: Timers;
  readonly signal: AbortSignal | undefined;
  readonly watch: Watch | undefined;
}

async function untilGivenUp<Result>(
  working: PromiseLike<Result>,
  stop: Stopper,
  { ms, timers, signal, watch }: Reasons,
): Promise<Result> {
  const { promise: givenUp, reject } = Promise.withResolvers<never>();
  let isSettled = false;
  function giveUp(reason: unknown): void {
    if (isSettled) return;
    reject(reason);
    stop.abort(reason);
  }
  const abandon = () => giveUp(signal?.reason);
  signal?.addEventListener("abort", abandon, { once: true });
  // An abort that came out of `work` itself was too early for the listener.
  if (signal?.aborted) abandon();
  const cancel = startDeadline(ms, timers, giveUp);
  const unwatch = watch?.(giveUp);
  try {
    return await Promise.race([givenUp, working]);
  } finally {
    isSettled = true;
    cancel();
    unwatch?.();
    signal?.removeEventListener("abort", abandon);
  }
}

/** While somebody waits for the answer, the process must live to see the deadline. Without one there is reason to give up as well. */
function startDeadline(ms: number, timers: Timers, giveUp: (reason: unknown) => void): () => void {
  try {
    return timers.after(ms, () => giveUp(new TimeoutError(ms)), "keeps the process alive");
  } catch (error) {
    giveUp(error);
    return () => {};
  }
}

function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && "then" in value;
}

/** What Node can wait in one go; it takes a longer wait for one of 1 ms. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;

function startTimer(ms: number, fn: () => void, hold: Hold): () => void {
  if (Number.isNaN(ms)) throw new RangeError("A wait needs a number of milliseconds, got NaN.");
  let left = ms;
  let timer: NodeJS.Timeout;
  function wait(): void {
    const part = Math.min(left, LONGEST_WAIT_MS);
    left -= part;
    timer = setTimeout(left > 0 ? wait : fn, part);
    // A browser's timer is a plain number: there is no process that it could keep alive.
    if (hold === "lets the process end") timer.unref?.();
  }
  wait();
  return () => clearTimeout(timer);
}

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
