import { expect, test } from "vitest";
import { LowWater } from "./low-water.ts";

const rows = (...places: readonly (readonly [number, number])[]) =>
  places.map(([priority, ord]) => ({ priority, ord }));
const slow = (now: number) => ({ now, tookMs: 50, whole: true });
const from = (priority: number, ord: number) => ({ priority, ord: { atLeast: ord } });

test("while looking from the start is quick, every search begins there", () => {
  const water = new LowWater();
  expect(water.conditions("a", 0)).toEqual({});
  water.learn("a", rows([0, 7]), { now: 10, tookMs: 10, whole: true });
  expect(water.conditions("a", 11)).toEqual({});
});

test("after a slow one, the next ones begin where it ended, for ten times as long as it took", () => {
  const water = new LowWater();
  water.learn("a", rows([0, 5], [0, 7]), slow(100));
  expect(water.conditions("a", 101)).toEqual(from(0, 7));
  expect(water.conditions("b", 101), "for the same roles only").toEqual({});
  water.learn("a", rows([0, 9]), { now: 110, tookMs: 1, whole: false });
  expect(water.conditions("a", 599)).toEqual(from(0, 9));
  expect(water.conditions("a", 600), "one looks from the start").toEqual({});
  expect(water.conditions("a", 601), "the others need not").toEqual(from(0, 9));
});

test("a mark moves on to lower priorities and later tasks, and not back by an answer that came late", () => {
  const water = new LowWater();
  water.learn("a", rows([5, 90]), slow(0));
  water.learn("a", rows([0, 3]), { now: 1, tookMs: 1, whole: false });
  water.learn("a", rows([5, 95]), { now: 2, tookMs: 1, whole: false });
  expect(water.conditions("a", 3)).toEqual(from(0, 3));
});

test("what was found from the start is the truth, also when it lies before the mark", () => {
  const water = new LowWater();
  water.learn("a", rows([0, 90]), slow(0));
  water.learn("a", rows([0, 4]), slow(500));
  expect(water.conditions("a", 501)).toEqual(from(0, 4));
});

test("a new task of a higher priority, something given back, and an empty list end the mark", () => {
  const water = new LowWater();
  water.learn("a", rows([0, 7]), slow(0));
  water.added(0);
  water.added(-1);
  expect(water.conditions("a", 1)).toEqual(from(0, 7));
  water.added(1);
  expect(water.conditions("a", 1)).toEqual({});
  water.learn("a", rows([0, 7]), slow(0));
  water.forget();
  expect(water.conditions("a", 1)).toEqual({});
  water.learn("a", rows([0, 7]), slow(0));
  water.learn("a", [], slow(1));
  expect(water.conditions("a", 2)).toEqual({});
});
