import type { Clock } from "./clock.ts";
import type { Random } from "./random.ts";

export interface Ids {
  /** A UUID of version 7 that sorts after all earlier ids of this generator, as text and as bytes. */
  next(): string;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const POOL_BYTES = 512;
const LAST_COUNT = 0xfff;
const LAST_INSTANT = 2 ** 48 - 1;

/**
 * Ids that sort by time (RFC 9562, version 7): 48 bits of milliseconds, a 12-bit counter in `rand_a`, 62 random bits.
 * The counter restarts each millisecond at a random value in its lower half. When it overflows or the clock steps back,
 * the time in the ids runs ahead of the clock: the order is kept, and the clock catches up.
 */
export function createIds(sources: { readonly clock: Clock; readonly random: Random }): Ids {
  const { clock, random } = sources;
  let pool = random.bytes(POOL_BYTES);
  let used = 0;
  let instant = Number.NEGATIVE_INFINITY;
  let count = 0;
  let prefix = "";

  /** The next byte of the pool; one large read of random bytes is cheaper than many small ones. */
  function byte(): number {
    if (used === POOL_BYTES) {
      pool = random.bytes(POOL_BYTES);
      used = 0;
    }
    const value = pool[used] as number;
    used += 1;
    return value;
  }

  function startInstant(ms: number): void {
    if (!(ms >= 0 && ms <= LAST_INSTANT))
      throw new RangeError(`No id can be made for the instant ${ms}.`);
    instant = ms;
    count = ((byte() & 0x07) << 8) | byte();
    const time = ms.toString(16).padStart(12, "0");
    prefix = `${time.slice(0, 8)}-${time.slice(8)}-7`;
  }

  function hex(): string {
    return HEX[byte()] as string;
  }

  return {
    next() {
      const now = Math.trunc(clock.now());
      // Negated, so that a clock that returns NaN is rejected by startInstant instead of counting as early.
      if (!(now <= instant)) startInstant(now);
      else if (count === LAST_COUNT) startInstant(instant + 1);
      else count += 1;
      const counter = `${((count >> 8) & 0x0f).toString(16)}${HEX[count & 0xff]}`;
      const variant = HEX[(byte() & 0x3f) | 0x80];
      const node = hex() + hex() + hex() + hex() + hex() + hex();
      return `${prefix}${counter}-${variant}${hex()}-${node}`;
    },
  };
}
