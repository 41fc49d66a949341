import { randomInt } from "node:crypto";
import { onTestFailed } from "vitest";

/** Where this run starts from: new every time, or the one of `FUZZ_SEED`, so that a red run can be looked at again. */
export function fuzzSeed(): number {
  const seed = Number(process.env["FUZZ_SEED"] ?? randomInt(2 ** 31));
  onTestFailed(() => console.error(`to see this again: FUZZ_SEED=${seed}`));
  return seed;
}
