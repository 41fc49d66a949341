import { fromIso } from "../util/clock.ts";
import type { Evidence } from "./evidence.ts";
import type { Violation } from "./invariants/table.ts";
import { lookAt } from "./look.ts";
import { LEASE_MS } from "./open-kit.ts";

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

/** What really happened, to be reported next to the zeros. */
export interface Counts {
  readonly effects: number;
  /** Requests that production did not take a second time, or from somebody who was late. */
  readonly refusedRepeats: number;
  readonly takenOver: number;
  readonly executed: number;
  readonly failed: number;
  readonly rejected: number;
  readonly undone: number;
  readonly unknown: number;
  readonly leftPending: number;
  /** How often the kill switch was thrown. */
  readonly stops: number;
  /** Answers that were still true. */
  readonly acknowledged: number;
  readonly entries: number;
}

export const NO_COUNTS: Counts = {
  effects: 0,
  refusedRepeats: 0,
  takenOver: 0,
  executed: 0,
  failed: 0,
  rejected: 0,
  undone: 0,
  unknown: 0,
  leftPending: 0,
  stops: 0,
  acknowledged: 0,
  entries: 0,
};

export function countsOf({ ledger, trail, decisions, told }: Evidence): Counts {
  const inState = (...states: readonly string[]) =>
    decisions.filter(({ state }) => states.includes(state)).length;
  const ofType = (name: string) => trail.filter(({ type }) => type === name).length;
  return {
    effects: ledger.filter(({ applied }) => applied).length,
    refusedRepeats: ledger.filter(({ applied }) => !applied).length,
    takenOver: ofType("operation.taken_over"),
    executed: inState("executed"),
    failed: inState("failed"),
    rejected: inState("rejected_tech", "rejected_ml"),
    undone: ofType("operation.undone"),
    unknown: ofType("operation.lost"),
    leftPending: inState("pending_tech", "pending_ml"),
    stops: ofType("switch.stopped"),
    acknowledged: told.length,
    entries: trail.length,
  };
}

export function addCounts(one: Counts, other: Counts): Counts {
  const names = Object.keys(NO_COUNTS) as readonly (keyof Counts)[];
  const sums = names.map((name) => [name, one[name] + other[name]] as const);
  return { ...NO_COUNTS, ...Object.fromEntries(sums) };
}

/** How long each call that was left behind waited for somebody, from the end of its lease. */
export function recoveryTimes(evidence: Evidence): readonly number[] {
  const look = lookAt(evidence);
  return evidence.operations.flatMap(({ id }) => {
    let held = 0;
    return look.linesOf(id).flatMap(({ type, at }) => {
      const now = fromIso(at);
      const waited = type === "operation.taken_over" ? [Math.max(0, now - held - LEASE_MS)] : [];
      held = now;
      return waited;
    });
  });
}

export interface Spread {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export function spreadOf(times: readonly number[]): Spread {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (part: number) => Math.round(sorted[Math.floor((sorted.length - 1) * part)] ?? 0);
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}
