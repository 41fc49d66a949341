import { appendFileSync } from "node:fs";

/** Counts and latencies by name: `{ crashes: 60, effects: 58, violations: 0, "ready p99 ms": 212 }`. */
export type Figures = Readonly<Record<string, number>>;

/** One line of the proof's record: what a test did for a goal of the threat model, and with which seed. */
export interface Recorded {
  readonly goal: string;
  readonly what: string;
  readonly figures: Figures;
  readonly seed?: number | string;
}

/**
 * Tells `npm run proof` what was really exercised and what was found; a test calls it before it asserts, so that a red one
 * is reported as well. Outside of a proof it does nothing.
 */
export function record(line: Recorded): void {
  const file = process.env["PROOF_FILE"];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(line)}\n`);
}
