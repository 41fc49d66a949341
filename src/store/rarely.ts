import { stopwatch } from "../util/clock.ts";

/** A look that took longer than this is not repeated at once. */
const SLOW_MS = 20;
const SHARE = 10;

/**
 * A look that many ask for at the same time: whoever comes while one is under way shares the next one, which begins after
 * they asked. If looking is slow, it is done only now and then, unless somebody wants to be sure.
 */
export class Rarely<Found> {
  readonly #look: (limit: number) => Promise<readonly Found[]>;
  #running: Promise<readonly Found[]> | undefined;
  #next: Promise<readonly Found[]> | undefined;
  #notBefore = 0;

  constructor(look: (limit: number) => Promise<readonly Found[]>) {
    this.#look = look;
  }

  async do(limit: number, thorough: boolean): Promise<readonly Found[]> {
    if (!thorough && stopwatch.now() < this.#notBefore) return [];
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
    const began = stopwatch.now();
    this.#running = this.#look(limit).finally(() => {
      this.#running = undefined;
      const ended = stopwatch.now();
      const tookMs = ended - began;
      this.#notBefore = tookMs < SLOW_MS ? 0 : ended + SHARE * tookMs;
    });
    return this.#running;
  }
}
