import type { Random } from "./random.ts";

/** The randomness of the web platform, also for browsers. Without a pool, because it is rarely used. */
export const webRandom: Random = {
  bytes: (length) => globalThis.crypto.getRandomValues(new Uint8Array(length)),
};
