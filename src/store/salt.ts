import type { Random } from "../util/random.ts";

/** 128 bits per entry: enough that nobody guesses an erased value from its hash. */
export function newSalt(random: Random): string {
  return Buffer.from(random.bytes(16)).toString("base64url");
}
