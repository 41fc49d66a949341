/**
 * Tells whether looking has become slow for good. One slow look may be chance; so many in a row mean that there is a lot to
 * walk over, or that the machine cannot follow, and then looking less often is worth what is noticed later.
 */
export class SlowStreak {
  readonly #slowMs: number;
  readonly #length: number;
  #count = 0;

  constructor({ slowMs, length }: { slowMs: number; length: number }) {
    this.#slowMs = slowMs;
    this.#length = length;
  }

  took(ms: number): void {
    this.#count = ms < this.#slowMs ? 0 : this.#count + 1;
  }

  get isSlow(): boolean {
    return this.#count >= this.#length;
  }
}

/** While looking is slow, this much of the time goes into it: one part of ten. */
export const PAUSE_PER_LOOK = 10;
