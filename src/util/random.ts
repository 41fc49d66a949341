import { hash, randomFillSync } from "node:crypto";

/** The only source of randomness, so that a simulation can be repeated from a seed. Shape: pulled. */
export interface Random {
  /** `length` fresh bytes that the caller owns. */
  bytes(length: number): Uint8Array;
}

const POOL_BYTES = 4096;
const pool = new Uint8Array(POOL_BYTES);
let used = POOL_BYTES;

/** The operating system's randomness, read 4 KiB at a time because each read costs more than the bytes. */
export const systemRandom: Random = {
  bytes(length) {
    if (length > POOL_BYTES / 8) return randomFillSync(new Uint8Array(length));
    if (used + length > POOL_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    const start = used;
    used += length;
    // Copy and erase: a later reader of the pool must not learn a token made from it.
    const bytes = pool.slice(start, used);
    pool.fill(0, start, used);
    return bytes;
  },
};

/**
 * The same bytes for the same seed, on every machine and version: SHA-256 over the seed and a counter. For tests and
 * simulations only: the seed determines all output.
 */
export function seededRandom(seed: number | string): Random {
  let blocks = 0;
  let block = new Uint8Array(0);
  let taken = 0;
  return {
    bytes(length) {
      const bytes = new Uint8Array(length);
      for (let filled = 0; filled < length; ) {
        if (taken === block.length) {
          block = hash("sha256", `sallyport:${seed}:${blocks}`, "buffer");
          blocks += 1;
          taken = 0;
        }
        const part = block.subarray(taken, taken + length - filled);
        bytes.set(part, filled);
        filled += part.length;
        taken += part.length;
      }
      return bytes;
    },
  };
}
