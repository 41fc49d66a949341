import type { Clock } from "../util/clock.ts";

/** So many a second in the long run, and so many at once after a pause. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** Senders who owe nothing are like those who never came; they are forgotten when there are so many more. */
const SWEEP_EVERY = 10_000;

/** Counts what each sender sends: whoever is faster than the rate is told how long to wait, and nobody else notices. */
export class Turnstile {
  /** What one passage costs, and how far ahead of time somebody may be, in milliseconds. */
  readonly #costMs: number;
  readonly #aheadMs: number;
  readonly #stopwatch: Clock;
  /** Until when each sender has used up its share. */
  readonly #usedUntil = new Map<string, number>();
  #sweepAt = SWEEP_EVERY;

  constructor({ perSecond, burst }: Rate, stopwatch: Clock) {
    this.#costMs = 1_000 / perSecond;
    this.#aheadMs = burst * this.#costMs;
    this.#stopwatch = stopwatch;
  }

  /** How many senders it remembers. */
  get size(): number {
    return this.#usedUntil.size;
  }

  /** 0 when this one may pass, otherwise after how many milliseconds it may. */
  pass(sender: string): number {
    const now = this.#stopwatch.now();
    const until = Math.max(now, this.#usedUntil.get(sender) ?? now) + this.#costMs;
    const tooFar = until - now - this.#aheadMs;
    if (tooFar > 0) return Math.ceil(tooFar);
    this.#usedUntil.set(sender, until);
    if (this.#usedUntil.size > this.#sweepAt) this.#sweep(now);
    return 0;
  }

  /** Undoes one passage of this sender. */
  giveBack(sender: string): void {
    const until = this.#usedUntil.get(sender);
    if (until !== undefined) this.#usedUntil.set(sender, until - this.#costMs);
  }

  #sweep(now: number): void {
    for (const [sender, until] of this.#usedUntil) {
      if (until <= now) this.#usedUntil.delete(sender);
    }
    this.#sweepAt = this.#usedUntil.size + SWEEP_EVERY;
  }
}
