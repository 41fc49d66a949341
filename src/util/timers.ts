import { stopwatch } from "./clock.ts";

/** The only way to wait, so that a simulation can control the order of events. Shape: callback. */
export interface Timers {
  /** Resolves after `ms`, or rejects with the signal's reason as soon as it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Runs `fn` in the next turn of the event loop, after pending I/O. */
  soon(fn: () => void): void;
  /** Milliseconds since some fixed point. Never steps back, unlike a clock; only differences are meaningful. */
  elapsedMs(): number;
  /**
   * Runs `fn` once after `ms` unless the returned function is called first. Does not keep the process alive unless
   * held.
   */
  after(ms: number, fn: () => void, hold?: Hold): () => void;
}

type Hold = "keeps the process alive" | "lets the process end";

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

/** Blocks the whole process. Only for start-up, when nothing else runs. */
export function sleepSync(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Work was abandoned because its time limit passed; named as the platform names it. */
export class TimeoutError extends Error {
  override readonly name = "TimeoutError";
  readonly ms: number;

  constructor(ms: number) {
    super(`No answer within ${ms} ms.`);
    this.ms = ms;
  }
}

/** Passed to work in progress, to signal that the answer is no longer wanted. */
export interface Stop {
  readonly signal: AbortSignal;
}

/** A caller's own reason to abort: it receives the abort function and is disposed when the work has ended. */
export type Watch = (giveUp: (reason: unknown) => void) => () => void;

/**
 * Resolves with the result of `work`, unless `ms` pass or `signal` is aborted first. Then the signal passed to `work`
 * is aborted and the promise rejects immediately, with a TimeoutError or the reason of `signal`, even if `work` ignores
 * its signal. A later answer is dropped.
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
 * The same, but a synchronous answer is returned synchronously and a synchronous throw is thrown. Most answers are
 * synchronous, and then a deadline, a signal and a promise would cost more than the answer.
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
    // An own property, so that a copy made with `...` has the signal as well.
    get signal() {
      return stop.signal;
    },
  });
  if (!isPromiseLike(working)) return working;
  return untilGivenUp(working, stop, { ms, timers, signal, watch });
}

/**
 * A signal that is aborted with the first of these; undefined when there is none. One alone is returned as it is, because a
 * combined signal is held by weak references, which cost every garbage collection more than the call that it was made for.
 */
export function firstOf(
  signal: AbortSignal,
  ...others: readonly (AbortSignal | undefined)[]
): AbortSignal;
export function firstOf(...given: readonly (AbortSignal | undefined)[]): AbortSignal | undefined;
export function firstOf(...given: readonly (AbortSignal | undefined)[]): AbortSignal | undefined {
  const signals = given.filter((signal) => signal !== undefined);
  return signals.length > 1 ? AbortSignal.any(signals) : signals[0];
}

/** Creates its controller when the signal is first read: synchronous work rarely reads it. */
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
  // An abort during the synchronous part of `work` came before the listener.
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

/**
 * While a caller waits, the process must stay alive until the deadline. Without a deadline the caller's own reason can
 * abort.
 */
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

/** The longest wait that Node supports; it treats a longer one as 1 ms. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;

function startTimer(ms: number, fn: () => void, hold: Hold): () => void {
  if (Number.isNaN(ms)) throw new RangeError("A wait needs a number of milliseconds, got NaN.");
  let left = ms;
  let timer: NodeJS.Timeout;
  function wait(): void {
    const part = Math.min(left, LONGEST_WAIT_MS);
    left -= part;
    timer = setTimeout(left > 0 ? wait : fn, part);
    // A browser's timer is a number and keeps no process alive.
    if (hold === "lets the process end") timer.unref?.();
  }
  wait();
  return () => clearTimeout(timer);
}

/**
 * Renews a lease until the returned function is called. A failed renewal is retried; only a definite refusal ends it.
 */
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

/** Calls `late` after `ms`, unless the returned function is called first. */
export function whenLate(
  { timers }: { readonly timers: Timers },
  ms: number,
  late: () => void,
): () => void {
  let isOver = false;
  // On a busy machine the timer is late and so is the answer that it waits for, which may be here already: that goes first.
  const cancel = timers.after(ms, () => timers.soon(() => isOver || late()));
  return () => {
    isOver = true;
    cancel();
  };
}

/** The result of work that ends within `ms`; undefined when it does not: the work continues, and its result is dropped. */
export function within<Result>(
  context: { readonly timers: Timers },
  ms: number,
  work: () => Promise<Result>,
): Promise<Result | undefined> {
  return new Promise((resolve, reject) => {
    const end = whenLate(context, ms, () => resolve(undefined));
    work().finally(end).then(resolve, reject);
  });
}
