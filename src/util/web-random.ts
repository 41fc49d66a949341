import type { Random } from "./random.ts";

/** The platform's randomness as browsers have it too; no pool, because it is asked for rarely. */
export const webRandom: Random = {
  bytes: (length) => globalThis.crypto.getRandomValues(new Uint8Array(length)),
};
