import type { Entry } from "../../app/client.ts";
import { dataOf } from "../../app/trail.ts";

// The figures of the plots, counted from the trail; nothing is stored for them.

export interface Series {
  /** Start of each bucket, in seconds since 1970. */
  readonly times: readonly number[];
  readonly asked: readonly number[];
  readonly approved: readonly number[];
  readonly rejected: readonly number[];
  readonly failed: readonly number[];
  /** Seconds from question to decision: median and 90th percentile. */
  readonly median: readonly (number | null)[];
  readonly p90: readonly (number | null)[];
  /** Every time from question to decision in the range, in seconds. */
  readonly waits: readonly number[];
  /** Share of yes among the decisions of people, in percent. */
  readonly rate: readonly (number | null)[];
}

export interface Range {
  readonly from: number;
  readonly to: number;
  readonly buckets: number;
}

export function seriesOf(entries: readonly Entry[], { from, to, buckets }: Range): Series {
  const width = (to - from) / buckets;
  const zeros = () => Array.from({ length: buckets }, () => 0);
  const asked = zeros();
  const approved = zeros();
  const rejected = zeros();
  const failed = zeros();
  const waits: number[][] = Array.from({ length: buckets }, () => []);
  const openedAt = new Map<string, number>();
  for (const entry of entries) {
    const at = Date.parse(entry.at);
    const bucket = Math.min(buckets - 1, Math.floor((at - from) / width));
    const add = (counts: number[]) => {
      if (bucket >= 0) counts[bucket] = (counts[bucket] ?? 0) + 1;
    };
    if (entry.type === "interaction.opened") {
      openedAt.set(entry.subject, at);
      if (dataOf(entry)["type"] === "confirm") add(asked);
    }
    if (entry.type === "interaction.answered") {
      const outcome = dataOf(entry)["outcome"];
      if (outcome === "approved") add(approved);
      if (outcome === "rejected") add(rejected);
      const since = openedAt.get(entry.subject);
      if (since !== undefined && outcome !== "answered") waits[bucket]?.push((at - since) / 1_000);
    }
    if (entry.type === "decision.failed") add(failed);
  }
  return {
    times: Array.from({ length: buckets }, (_, at) => (from + at * width) / 1_000),
    asked,
    approved,
    rejected,
    failed,
    waits: waits.flat(),
    median: waits.map(median),
    p90: waits.map((list) => quantile(list, 0.9)),
    rate: approved.map((yes, at) => {
      const all = yes + (rejected[at] ?? 0);
      return all === 0 ? null : Math.round((100 * yes) / all);
    }),
  };
}

/** The median; of an even number of values the mean of the middle two. */
export function median(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  const high = sorted[Math.floor(sorted.length / 2)];
  const low = sorted[Math.ceil(sorted.length / 2) - 1];
  return high === undefined || low === undefined ? null : (low + high) / 2;
}

export function quantile(values: readonly number[], part: number): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? null;
}
