import { expect, test } from "vitest";
import { Turnstile } from "./connections.ts";

function turnstile(perSecond: number, burst: number) {
  const time = { now: 0 };
  return { time, gate: new Turnstile({ perSecond, burst }, { now: () => time.now }) };
}

test("rate limit: allows a burst, then returns the wait time, then holds the rate [T39]", () => {
  const { time, gate } = turnstile(10, 3);
  expect([1, 2, 3, 4].map(() => gate.pass("a"))).toEqual([0, 0, 0, 100]);
  time.now = 99;
  expect(gate.pass("a")).toBe(1);
  time.now = 100;
  expect([gate.pass("a"), gate.pass("a")]).toEqual([0, 100]);
});

test("rate limit: a sender that keeps retrying is still served at its rate [T39]", () => {
  const { time, gate } = turnstile(10, 1);
  let passed = 0;
  for (; time.now < 10_000; time.now += 1) if (gate.pass("a") === 0) passed += 1;
  expect(passed).toBe(100);
});

test("rate limit: senders do not affect each other [T39]", () => {
  const { gate } = turnstile(1, 1);
  expect(gate.pass("a")).toBe(0);
  expect(gate.pass("a")).toBe(1_000);
  expect(gate.pass("b")).toBe(0);
});

test("rate limit: a pause restores the burst and no more [T39]", () => {
  const { time, gate } = turnstile(10, 2);
  gate.pass("a");
  time.now = 3_600_000;
  expect([1, 2, 3].map(() => gate.pass("a"))).toEqual([0, 0, 100]);
});

test("rate limit: idle senders are forgotten, waiting ones are not [T39]", () => {
  const { time, gate } = turnstile(1, 1);
  gate.pass("late");
  for (let nth = 0; nth < 9_999; nth += 1) gate.pass(`once-${nth}`);
  time.now = 900;
  gate.pass("busy");
  time.now = 1_100;
  for (let nth = 0; nth < 20_000; nth += 1) gate.pass(`more-${nth}`);
  expect(gate.size).toBeLessThan(25_000);
  expect(gate.pass("busy")).toBeGreaterThan(0);
});
