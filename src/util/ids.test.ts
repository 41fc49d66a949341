import { expect, test } from "vitest";
import { manualClock, systemClock } from "./clock.ts";
import { createIds } from "./ids.ts";
import { seededRandom, systemRandom } from "./random.ts";

const V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test("ids are UUIDs of version 7 and begin with the instant", () => {
  const clock = manualClock(0x0123_4567_89ab);
  const id = createIds({ clock, random: systemRandom }).next();
  expect(id).toMatch(V7);
  expect(id.startsWith("01234567-89ab-7")).toBe(true);
});

test("ids are unique and sorted within one millisecond, past the end of the counter", () => {
  const ids = createIds({ clock: manualClock(5), random: systemRandom });
  expectSorted(Array.from({ length: 20_000 }, () => ids.next()));
});

test("ids stay sorted when the clock steps back, stops or jumps", () => {
  const clock = manualClock(1_000_000);
  const ids = createIds({ clock, random: seededRandom(1) });
  const steps = [0, 1, -500_000, 0, 3, 600_000, -1, 0, 1];
  const all: string[] = [];
  for (let round = 0; round < 3_000; round += 1) {
    all.push(ids.next());
    clock.set(Math.max(0, clock.now() + steps[round % steps.length]!));
  }
  expectSorted(all);
});

test("ids catch up with the clock after running ahead of it", () => {
  const clock = manualClock(100);
  const ids = createIds({ clock, random: systemRandom });
  for (let n = 0; n < 50_000; n += 1) ids.next();
  clock.set(1_000);
  expect(ids.next().slice(0, 13)).toBe("00000000-03e8");
});

test("ids of the real clock are sorted and differ between generators", () => {
  const sources = { clock: systemClock, random: systemRandom };
  const [one, two] = [createIds(sources), createIds(sources)];
  const all = Array.from({ length: 50_000 }, () => one.next());
  expectSorted(all);
  const others = new Set(Array.from({ length: 50_000 }, () => two.next()));
  expect(all.filter((id) => others.has(id))).toEqual([]);
});

test("the random part is fresh in every id", () => {
  const ids = createIds({ clock: manualClock(5), random: systemRandom });
  const tails = Array.from({ length: 10_000 }, () => ids.next().slice(19));
  expect(new Set(tails).size).toBe(10_000);
  const variants = new Set(tails.map((tail) => tail[0]));
  expect([...variants].sort()).toEqual(["8", "9", "a", "b"]);
});

test("the same seed and clock give the same ids", () => {
  const make = () => {
    const ids = createIds({ clock: manualClock(1), random: seededRandom("x") });
    return Array.from({ length: 100 }, () => ids.next());
  };
  expect(make()).toEqual(make());
});

test("an instant that does not fit is refused instead of wrapped", () => {
  for (const now of [-1, Number.NaN, 2 ** 48]) {
    const ids = createIds({ clock: { now: () => now }, random: systemRandom });
    expect(() => ids.next()).toThrow(RangeError);
  }
});

function expectSorted(ids: readonly string[]): void {
  for (const id of ids) if (!V7.test(id)) throw new Error(`not a version 7 UUID: ${id}`);
  const isSorted = ids.every((id, index) => index === 0 || ids[index - 1]! < id);
  expect(isSorted).toBe(true);
}
