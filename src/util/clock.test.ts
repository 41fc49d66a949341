import { describe, expect, test } from "vitest";
import { fromIso, manualClock, systemClock, toIso } from "./clock.ts";

test("systemClock returns whole milliseconds", () => {
  const before = Date.now();
  const now = systemClock.now();
  expect(Number.isInteger(now)).toBe(true);
  expect(now).toBeGreaterThanOrEqual(before);
});

test("manualClock moves only when advance or set is called", () => {
  const clock = manualClock(1_000);
  expect(clock.now()).toBe(1_000);
  clock.advance(500);
  clock.advance(0);
  expect(clock.now()).toBe(1_500);
  clock.set(200);
  expect(clock.now()).toBe(200);
  for (const ms of [-1, Number.NaN, 0.5]) expect(() => clock.advance(ms)).toThrow(RangeError);
  expect(() => manualClock(Number.NaN)).toThrow(RangeError);
  expect(clock.now()).toBe(200);
});

describe("ISO instants", () => {
  test.each([
    [0, "1970-01-01T00:00:00.000Z"],
    [1_794_722_400_000, "2026-11-15T06:00:00.000Z"],
    [-1, "1969-12-31T23:59:59.999Z"],
    [253_402_300_799_999, "9999-12-31T23:59:59.999Z"],
    [-62_167_219_200_000, "0000-01-01T00:00:00.000Z"],
    [951_782_400_000, "2000-02-29T00:00:00.000Z"],
  ])("%d is %s, both ways", (ms, text) => {
    expect(toIso(ms)).toBe(text);
    expect(fromIso(text)).toBe(ms);
  });

  test("sort as text like they sort in time", () => {
    const instants = Array.from({ length: 200 }, (_, n) => (n - 50) * 987_654_321_987);
    expect(instants.map(toIso)).toEqual(instants.map(toIso).sort());
  });

  test.each([
    "",
    "2026-11-15",
    "2026-11-15T06:00:00Z",
    "2026-11-15T06:00:00.00Z",
    "2026-11-15T06:00:00.000",
    "2026-11-15T06:00:00.000z",
    "2026-11-15T06:00:00.000+00:00",
    "2026-11-15 06:00:00.000Z",
    "2026-11-15T06:00:00.000Z ",
    "2026-11-15T06:00:00.000Z\n",
    "2026-02-29T00:00:00.000Z",
    "2026-02-30T00:00:00.000Z",
    "2026-13-01T00:00:00.000Z",
    "2026-00-01T00:00:00.000Z",
    "2026-11-15T24:00:00.000Z",
    "2026-11-15T06:60:00.000Z",
    "2026-11-15T06:00:60.000Z",
    "+002026-11-15T06:00:00.000Z",
    "-000001-01-01T00:00:00.000Z",
    "２０２６-11-15T06:00:00.000Z",
    "1794722400000",
  ])("%j is refused", (text) => {
    expect(() => fromIso(text)).toThrow(RangeError);
  });

  test.each([Number.NaN, 1.5, 1e15, -1e15, Number.POSITIVE_INFINITY])("%d has no form", (ms) => {
    expect(() => toIso(ms)).toThrow(RangeError);
  });
});
