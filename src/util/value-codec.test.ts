import { deepStrictEqual } from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeValue, encodeValue } from "./value-codec.ts";

describe("encodeValue", () => {
  test.each([
    [null, "null"],
    [1.5, "1.5"],
    ["a\n", '"a\\n"'],
    [{ b: [1, null], a: "x" }, '{"b":[1,null],"a":"x"}'],
    [{ a: { $v8: "nested is not special" } }, '{"a":{"$v8":"nested is not special"}}'],
    [["$v8"], '["$v8"]'],
  ])("keeps plain JSON readable: %j", (value, text) => {
    expect(encodeValue(value)).toBe(text);
    deepStrictEqual(decodeValue(text), value);
  });

  const sparse = [1];
  sparse[2] = 2;
  const cycle: Record<string, unknown> = { name: "cycle" };
  cycle["self"] = cycle;
  test.each([
    ["undefined", undefined],
    ["an undefined property", { a: undefined }],
    ["-0", -0],
    ["NaN", Number.NaN],
    ["a bigint", 12345678901234567890n],
    ["a Date", new Date(0)],
    ["a Map with a Set", new Map([["a", new Set([1, undefined])]])],
    ["bytes", new Uint8Array([1, 2, 255])],
    ["a Buffer", Buffer.from("bytes")],
    ["a RegExp", /a+/gi],
    ["a hole", sparse],
    ["a cycle", cycle],
    ["the key $v8", { $v8: "AAAA" }],
    ["the key $v8 among others", { $v8: 1, b: 2 }],
    ["the key __proto__", JSON.parse('{"a":1,"__proto__":{"polluted":true}}')],
    ["keys that JSON.parse may misread", { x: 0, "\n": 1, 'a"': 2, "a\\": 3 }],
    ["depth 600", nest(600)],
  ])("wraps %s and gives it back", (_, value) => {
    const text = encodeValue(value);
    expect(text).toMatch(/^\{"\$v8":"[A-Za-z0-9+/=]+"\}$/);
    deepStrictEqual(decodeValue(text), value);
  });

  test("an Error keeps its name, message and cause", () => {
    const error = decodeValue(encodeValue(new TypeError("outer", { cause: new Error("inner") })));
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ message: "outer", cause: { message: "inner" } });
  });

  test("a knot of shared references stays small", () => {
    let knot: unknown = { leaf: 1 };
    for (let level = 0; level < 60; level += 1) knot = [knot, knot];
    expect(encodeValue(knot).length).toBeLessThan(2_000);
  });

  test.each([
    ["a function", () => 1],
    ["a function inside", { a: [() => 1] }],
    ["a symbol", { a: Symbol("x") }],
    ["a promise", Promise.resolve()],
    ["a WeakMap", new WeakMap()],
    ["depth 200,000", nest(200_000)],
  ])("refuses %s with a sentence", (_, value) => {
    expect(() => encodeValue(value)).toThrow(TypeError);
    expect(() => encodeValue(value)).toThrow(
      /^This value cannot be kept, because it is not data: /,
    );
  });

  test("every clonable value comes back as a structured clone would", () => {
    const values = fc.anything({
      withBigInt: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withSparseArray: true,
      withTypedArray: true,
    });
    const property = fc.property(values, (value) => {
      const text = encodeValue(value);
      JSON.parse(text);
      deepStrictEqual(decodeValue(text), structuredClone(value));
    });
    fc.assert(property, { numRuns: 5_000 });
  });
});

describe("decodeValue", () => {
  test.each(["", "{", "undefined", '{"$v8":""}', '{"$v8":"AAAA"}', '{"$v8":1}', '{"$v8":"!"}'])(
    "refuses %j, which encodeValue never writes",
    (text) => {
      expect(() => decodeValue(text)).toThrow(/^This text was not written by encodeValue/);
    },
  );

  test("data is never mistaken for a wrapper [T26]", () => {
    const forged = JSON.parse(encodeValue(new Date(0)));
    expect(decodeValue(encodeValue(forged))).toEqual(forged);
  });
});

function nest(depth: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < depth; level += 1) value = [value];
  return value;
}
