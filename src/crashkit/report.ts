import { fromIso } from "../util/clock.ts";
import { lookAt, type RunEvidence } from "./evidence.ts";
import type { Violation } from "./invariants/table.ts";
import { LEASE_MS } from "./open-kit.ts";

/** What a run did and found. A run that did too little proves nothing, so it includes the counts. */
export interface CrashKitReport {
  readonly ok: boolean;
  readonly mode: "random" | "points";
  readonly store: string;
  /** Repeats the choices of this run. */
  readonly seed: number;
  readonly seconds: number;
  /** How often each thing happened, by name. */
  readonly exercised: Readonly<Record<string, number>>;
  /** In milliseconds. */
  readonly latencies: Readonly<Record<string, Spread>>;
  readonly violations: readonly Violation[];
}

/** As text: the result first, then the violations, then the counts. */
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

type Counted = Pick<RunEvidence, "ledger" | "trail" | "decisions" | "told">;

/** How often each thing happened. */
export function countsOf({ ledger, trail, decisions, told }: Counted) {
  const inState = (...states: readonly string[]) =>
    decisions.filter(({ state }) => states.includes(state)).length;
  const ofType = (name: string) => trail.filter(({ type }) => type === name).length;
  return {
    effects: ledger.filter(({ applied }) => applied).length,
    /** Requests that production refused as repeats, or because their fence was old. */
    refusedRepeats: ledger.filter(({ applied }) => !applied).length,
    takenOver: ofType("operation.taken_over"),
    executed: inState("executed"),
    failed: inState("failed"),
    rejected: inState("rejected_tech", "rejected_ml"),
    undone: ofType("operation.undone"),
    unknown: ofType("operation.lost"),
    leftPending: inState("pending_tech", "pending_ml"),
    /** How often the kill switch was used. */
    stops: ofType("switch.stopped"),
    /** Answers that callers received. */
    acknowledged: told.length,
    entries: trail.length,
  };
}

export type Counts = Readonly<ReturnType<typeof countsOf>>;

const NOTHING = { ledger: [], trail: [], decisions: [], told: [] };
export const NO_COUNTS = countsOf(NOTHING);

export function addCounts(one: Counts, other: Counts): Counts {
  const names = Object.keys(one) as readonly (keyof Counts)[];
  return Object.fromEntries(names.map((name) => [name, one[name] + other[name]])) as Record<
    keyof Counts,
    number
  >;
}

/** How long each abandoned call waited for its takeover, from the end of its lease. */
export function recoveryTimes(evidence: RunEvidence): readonly number[] {
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
