import { expect, test } from "vitest";
import { deepFreeze, isDeepFrozen } from "./json.ts";

test("a deeply frozen value cannot change at any depth", () => {
  const value = deepFreeze({ a: [{ b: 1 }] });
  expect(isDeepFrozen(value)).toBe(true);
  expect(() => {
    (value.a[0] as { b: number }).b = 2;
  }).toThrow(TypeError);
  expect(() => (value.a as unknown[]).push(1)).toThrow(TypeError);
});

test("a shallow freeze is not taken for a deep one, a cycle is no problem", () => {
  expect(isDeepFrozen(Object.freeze({ a: {} }))).toBe(false);
  const knot: { self?: unknown } = {};
  knot.self = knot;
  expect(isDeepFrozen(deepFreeze(knot))).toBe(true);
});
