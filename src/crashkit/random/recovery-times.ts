import { fromIso } from "../../util/clock.ts";
import type { Evidence } from "../evidence.ts";
import { lookAt } from "../look.ts";
import { LEASE_MS } from "../open-kit.ts";

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
