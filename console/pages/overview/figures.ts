import type { Bucket, Count, Outcome } from "./outcome-bars.tsx";

/** The time that is looked at: its name, its length, and what a bar stands for. */
export const RANGES = {
  hour: ["Last hour", 3_600_000, "hour"],
  day: ["Last 24 hours", 86_400_000, "hour"],
  week: ["Last 7 days", 7 * 86_400_000, "day"],
  month: ["Last 30 days", 30 * 86_400_000, "day"],
} as const;
export type Range = keyof typeof RANGES;

/** From an address that anybody may have written. */
export function readRange({ range }: Readonly<Record<string, unknown>>): {
  readonly range?: Range;
} {
  return typeof range === "string" && range in RANGES ? { range: range as Range } : {};
}

export function sumOf(items: readonly Count[], ...outcomes: readonly Outcome[]): number {
  return items
    .filter(({ outcome }) => outcomes.length === 0 || outcomes.includes(outcome))
    .reduce((sum, { count }) => sum + count, 0);
}

const STEPS = { hour: 3_600_000, day: 86_400_000 } as const;

/** One per hour or day, empty ones too. */
export function bucketsOf(
  items: readonly Count[],
  from: string,
  span: number,
  step: keyof typeof STEPS,
): readonly Bucket[] {
  const size = STEPS[step];
  const first = Math.floor(Date.parse(from) / size) * size;
  const length = Math.floor((Date.parse(from) + span - first) / size) + 1;
  return Array.from({ length }, (_, at) => {
    const start = new Date(first + at * size).toISOString();
    return {
      from: start,
      to: new Date(first + (at + 1) * size).toISOString(),
      counts: items.filter(({ key }) => key === start),
    };
  });
}

export interface TroubleRow {
  readonly key: string;
  readonly calls: number;
  readonly refused: number;
  readonly rejected: number;
  readonly failed: number;
  readonly undone: number;
}

export function byTrouble(items: readonly Count[]): readonly TroubleRow[] {
  const rows = [...Map.groupBy(items, ({ key }) => key)].map(([key, own]) => ({
    key,
    calls: sumOf(own),
    refused: sumOf(own, "refused"),
    rejected: sumOf(own, "rejected", "expired"),
    failed: sumOf(own, "failed", "unknown"),
    undone: sumOf(own, "undone"),
  }));
  const trouble = (row: TroubleRow) => row.refused + row.rejected + row.failed + row.undone;
  return rows.toSorted((a, b) => trouble(b) - trouble(a) || b.calls - a.calls);
}
