import { expect, test } from "vitest";
import { manualClock } from "../../src/util/clock.ts";
import { manualTimers } from "./manual-timers.ts";

test("runs due timers in order, each at its own instant", async () => {
  const clock = manualClock(1_000);
  const timers = manualTimers(clock);
  const seen: string[] = [];
  const note = (name: string) => () => seen.push(`${name}@${clock.now()}`);
  timers.after(30, note("c"));
  timers.after(10, note("a"));
  timers.after(10, note("b"));
  timers.after(31, note("later"));
  timers.soon(note("soon"));
  const cancel = timers.after(5, note("cancelled"));
  cancel();
  await timers.advance(30);
  expect(seen).toEqual(["soon@1000", "a@1010", "b@1010", "c@1030"]);
  expect(clock.now()).toBe(1_030);
  expect(timers.open).toBe(1);
});

test("timers started during an advance also fall due during it", async () => {
  const clock = manualClock(0);
  const timers = manualTimers(clock);
  const instants: number[] = [];
  const run = (async () => {
    for (let n = 0; n < 5; n += 1) {
      await timers.sleep(10);
      instants.push(clock.now());
    }
  })();
  await timers.advance(1_000);
  await run;
  expect(instants).toEqual([10, 20, 30, 40, 50]);
});

test("a sleep can be aborted", async () => {
  const timers = manualTimers(manualClock(0));
  const stop = new AbortController();
  const sleep = timers.sleep(10, stop.signal);
  stop.abort(new Error("enough"));
  await expect(sleep).rejects.toThrow("enough");
  await expect(timers.sleep(10, stop.signal)).rejects.toThrow("enough");
  expect(timers.open).toBe(0);
});
