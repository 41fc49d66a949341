import { type Clock, stopwatch as realStopwatch } from "../util/clock.ts";
import { PAUSE_PER_LOOK, SlowStreak } from "./slow-streak.ts";

/**
 * A look that many ask for at the same time: whoever comes while one is under way shares the next one, which begins after
 * they asked. If looking is slow for good, it is done only now and then, unless somebody wants to be sure.
 */
export class Rarely<Found> {
  readonly #look: (limit: number) => Promise<readonly Found[]>;
  readonly #stopwatch: Clock;
  readonly #streak = new SlowStreak({ slowMs: 5, length: 16 });
  #running: Promise<readonly Found[]> | undefined;
  #next: Promise<readonly Found[]> | undefined;
  #notBefore = 0;

  constructor(
    look: (limit: number) => Promise<readonly Found[]>,
    stopwatch: Clock = realStopwatch,
  ) {
    this.#look = look;
    this.#stopwatch = stopwatch;
  }

  async do(limit: number, thorough: boolean): Promise<readonly Found[]> {
    if (!thorough && this.#stopwatch.now() < this.#notBefore) return [];
    if (this.#running === undefined) return this.#start(limit);
    this.#next ??= this.#running
      .catch(() => [])
      .then(() => {
        this.#next = undefined;
        return this.#start(limit);
      });
    return this.#next;
  }

  #start(limit: number): Promise<readonly Found[]> {
    const began = this.#stopwatch.now();
    this.#running = this.#look(limit).finally(() => {
      this.#running = undefined;
      const ended = this.#stopwatch.now();
      this.#streak.took(ended - began);
      this.#notBefore = this.#streak.isSlow ? ended + PAUSE_PER_LOOK * (ended - began) : 0;
    });
    return this.#running;
  }
}
