import { expect, test } from "vitest";
import { ClockWatch, clockBehind, clockJumped } from "./turn.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const START = Date.parse("2026-11-15T06:00:00.000Z");

function watched() {
  const time = { elapsed: 1_000, uptime: 9_000 };
  const watch = new ClockWatch({ elapsedMs: () => time.elapsed, uptimeMs: () => time.uptime });
  const pass = (ms: number) => {
    time.elapsed += ms;
    time.uptime += ms;
  };
  return { watch, time, pass };
}

test("a clock that runs on, is corrected by less than a minute or was not asked for hours is believed", () => {
  const { watch, pass } = watched();
  expect(watch.jumpOf(START)).toBe(0);
  pass(5_000);
  expect(watch.jumpOf(START + 5_000 + 40_000)).toBe(0);
  pass(5_000);
  expect(watch.jumpOf(START + 10_000)).toBe(0);
  pass(7 * HOUR);
  expect(watch.jumpOf(START + 10_000 + 7 * HOUR)).toBe(0);
});

test("one wrong reading is refused, and the next right one is believed at once [SH9]", () => {
  const { watch, pass } = watched();
  watch.jumpOf(START);
  for (const wrong of [24 * HOUR, -24 * HOUR, 2 * MINUTE, -2 * MINUTE]) {
    pass(1_000);
    expect(watch.jumpOf((watch.trusted?.now ?? 0) + 1_000 + wrong)).toBe(wrong);
    pass(1_000);
    expect(watch.jumpOf((watch.trusted?.now ?? 0) + 2_000)).toBe(0);
  }
});

test("a clock that was set is believed once it has run evenly for half a minute, and not while it keeps jumping [SH9]", () => {
  const { watch, pass } = watched();
  watch.jumpOf(START);
  expect(watch.jumpOf(START + HOUR)).toBe(HOUR);
  pass(29_000);
  expect(watch.jumpOf(START + HOUR + 29_000)).toBe(HOUR);
  // It jumps once more, so it is watched from here.
  expect(watch.jumpOf(START + 9 * HOUR)).toBe(9 * HOUR - 29_000);
  pass(29_000);
  expect(watch.jumpOf(START + 9 * HOUR + 29_000)).not.toBe(0);
  pass(1_000);
  expect(watch.jumpOf(START + 9 * HOUR + 30_000)).toBe(0);
  pass(1_000);
  expect(watch.jumpOf(START)).toBeLessThan(-8 * HOUR);
});

test("after a night in which the machine slept its clock is believed at once [SH9]", () => {
  const { watch, time, pass } = watched();
  watch.jumpOf(START);
  pass(20_000);
  watch.jumpOf(START + 20_000);
  time.uptime += 8 * HOUR;
  expect(watch.jumpOf(START + 20_000 + 8 * HOUR)).toBe(0);
  pass(1_000);
  expect(watch.jumpOf(START + 16 * HOUR)).not.toBe(0);
});

test("an answer that lay unread for long is no clock that went back [SH9]", () => {
  const { watch, time, pass } = watched();
  watch.jumpOf(START);
  const asked = time.elapsed;
  pass(10 * MINUTE);
  expect(watch.jumpOf(START, asked)).toBe(0);
  pass(1_000);
  expect(watch.jumpOf(START + 10 * MINUTE + 1_000)).toBe(0);
  const again = time.elapsed;
  pass(10 * MINUTE);
  expect(watch.jumpOf(START - HOUR, again)).toBeLessThan(-HOUR);
});

test("another thread goes on from what was believed last [SH9]", () => {
  const { watch, time, pass } = watched();
  watch.jumpOf(START);
  pass(1_000);
  const steady = { elapsedMs: () => time.elapsed, uptimeMs: () => time.uptime };
  expect(new ClockWatch(steady, watch.trusted).jumpOf(START + HOUR)).toBe(HOUR - 1_000);
});

test("the errors say what is wrong and what to do", () => {
  expect(clockJumped(24 * HOUR).details["hint"]).toMatch(/jumped 1 day forward\. .*check/);
  expect(clockJumped(-3 * MINUTE).details["hint"]).toMatch(/jumped 3 minutes back/);
  const behind = clockBehind("2026-11-16T06:00:00.000Z", 23 * HOUR);
  expect(behind.details["hint"]).toMatch(/23 hours behind .* sallyport store clock --accept/);
});
