import type { Violation } from "./invariants/table.ts";
import type { Spread } from "./random/recovery-times.ts";

/** What a run did and what it found. A run that did too little proves nothing, so the counts stand beside the zeros. */
export interface CrashKitReport {
  readonly ok: boolean;
  readonly mode: "random" | "points";
  readonly store: string;
  /** Give it again to repeat the choices of this run. */
  readonly seed: number;
  readonly seconds: number;
  /** What really happened, by name. */
  readonly exercised: Readonly<Record<string, number>>;
  /** In milliseconds. */
  readonly latencies: Readonly<Record<string, Spread>>;
  readonly violations: readonly Violation[];
}

/** For people: how it stands first, then what was found, then what was done. */
export function describeReport(report: CrashKitReport): string {
  const { ok, mode, store, seed, seconds, exercised, latencies, violations } = report;
  const found = violations.map(({ id, problem }) => `  ${id}  ${problem}`);
  const done = Object.entries(exercised).map(([name, count]) => `  ${name}: ${count}`);
  const times = Object.entries(latencies).map(
    ([name, { count, p50, p99, max }]) =>
      `  ${name}: p50 ${p50}, p99 ${p99}, max ${max} (${count})`,
  );
  return [
    ok ? "All invariants hold." : `${violations.length} violations:`,
    ...found,
    "",
    `${mode} on ${store}, seed ${seed}, ${seconds} s`,
    ...done,
    "",
    "milliseconds",
    ...times,
  ].join("\n");
}
