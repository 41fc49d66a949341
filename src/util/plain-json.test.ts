import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { busyMs } from "../../tests/support/busy-time.ts";
import { isPlainJson } from "./json.ts";

class Money {
  cents = 1;
}
const sparse = [1];
sparse[2] = 2;
const cycle: unknown[] = [];
cycle.push(cycle);
const named = Object.assign([1, 2], { name: "x" });
// As many keys as elements, and still not plain: one hole and one name.
const holeAndName = Object.assign([1, 2], { name: "x" });
delete holeAndName[0];

describe("isPlainJson", () => {
  test.each([
    [null],
    [true],
    [0],
    [1.5],
    [1e300],
    ["text"],
    ["\ud800"],
    [[]],
    [[1, [2]]],
    [{}],
    [{ a: null, b: { c: [1] } }],
    [{ constructor: 1, toJSON: "text", $v8: "x", "€ 😀": 1 }],
    [Object.assign(Object.create(null), { a: 1 })],
    [nest(500)],
  ])("plain: %j", (value) => {
    expect(isPlainJson(value)).toBe(true);
    deepStrictEqual(JSON.parse(JSON.stringify(value)), copy(value));
  });

  test.each([
    ["undefined", undefined],
    ["an undefined property", { a: undefined }],
    ["-0", -0],
    ["a nested -0", { a: [-0] }],
    ["NaN", Number.NaN],
    ["Infinity", Number.POSITIVE_INFINITY],
    ["a bigint", 1n],
    ["a symbol", Symbol("x")],
    ["a symbol as a key", { [Symbol("x")]: 1 }],
    ["a function", () => 1],
    ["a method", { a() {} }],
    ["toJSON", { toJSON: () => 1 }],
    ["a Date", new Date(0)],
    ["a Map", new Map()],
    ["a class instance", new Money()],
    ["an array of another class", new (class Rows extends Array {})()],
    ["a boxed text", Object("x")],
    ["bytes", new Uint8Array(2)],
    ["a hole", sparse],
    ["a very long hole", new Array(4_000_000_000)],
    ["a name on an array", named],
    ["a hole and a name", holeAndName],
    ["a match", /a/.exec("a")],
    ["the key __proto__", JSON.parse('{"__proto__":1}')],
    ["a key that JSON.parse may misread", { a: 1, "\n": 1 }],
    ["a quote in a key", { 'say "x"': 1 }],
    ["a backslash in a key", { "a\\": 1 }],
    ["a cycle", cycle],
    ["depth 501", nest(501)],
    ["depth 200,000", nest(200_000)],
  ])("not plain: %s", (_, value) => {
    expect(isPlainJson(value)).toBe(false);
  });

  test("a knot of shared references is given up soon [T25]", () => {
    let knot: unknown = 1;
    for (let level = 0; level < 60; level += 1) knot = [knot, knot];
    expect(busyMs(() => expect(isPlainJson(knot)).toBe(false))).toBeLessThan(1_000);
  });

  test("a value is plain exactly when it survives a JSON round trip", () => {
    const values = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSparseArray: true,
      withTypedArray: true,
      withNullPrototype: true,
    });
    const property = fc.property(values, (value) => {
      if (isPlainJson(value)) deepStrictEqual(JSON.parse(JSON.stringify(value)), copy(value));
    });
    fc.assert(property, { numRuns: 5_000 });
  });
});

function nest(depth: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < depth; level += 1) value = [value];
  return value;
}

/** The same value with ordinary prototypes. */
function copy(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copy);
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, copy(part)]));
}
