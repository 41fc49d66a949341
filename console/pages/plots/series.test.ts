import { expect, test } from "vitest";
import type { Entry } from "../../app/client.ts";
import { median, quantile, seriesOf } from "./series.ts";

function entry(minute: number, type: string, subject: string, data: object): Entry {
  const at = new Date(minute * 60_000).toISOString();
  return { at, type, subject, data: JSON.stringify(data) } as Entry;
}

test("plots: counts, waiting times and rate are put into their buckets", () => {
  const entries = [
    entry(1, "interaction.opened", "a", { type: "confirm" }),
    entry(2, "interaction.opened", "b", { type: "confirm" }),
    entry(2, "interaction.opened", "q", { type: "ask_user" }),
    entry(3, "interaction.answered", "a", { outcome: "approved" }),
    entry(4, "interaction.answered", "q", { outcome: "answered" }),
    entry(12, "interaction.answered", "b", { outcome: "rejected" }),
    entry(13, "decision.failed", "a", {}),
  ];
  const series = seriesOf(entries, { from: 0, to: 20 * 60_000, buckets: 2 });
  expect(series).toEqual({
    times: [0, 600],
    asked: [2, 0],
    approved: [1, 0],
    rejected: [0, 1],
    failed: [0, 1],
    waits: [120, 600],
    median: [120, 600],
    p90: [120, 600],
    rate: [100, 0],
  });
});

test("plots: the typical time to decide is the median of all decisions, not of bucket medians [W7]", () => {
  const waits = [1, 1, 1, 1, 1, 100];
  const entries = waits.flatMap((seconds, at) => [
    entry(at === 5 ? 11 : 1, "interaction.opened", `q${at}`, { type: "confirm" }),
    entry((at === 5 ? 11 : 1) + seconds / 60, "interaction.answered", `q${at}`, {
      outcome: "approved",
    }),
  ]);
  const series = seriesOf(entries, { from: 0, to: 20 * 60_000, buckets: 2 });
  expect(series.waits).toEqual(waits);
  expect(median(series.waits)).toBe(1);
  expect(median([1, 2, 3, 10])).toBe(2.5);
  expect(median([])).toBe(null);
});

test("plots: quantiles of few values and of none", () => {
  expect(quantile([], 0.5)).toBe(null);
  expect(quantile([3, 1, 2], 0.5)).toBe(2);
  expect(quantile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 0.9)).toBe(10);
});
