import { describe, expect, test } from "vitest";
import { busyMs } from "../../tests/support/busy-time.ts";
import { canonicalJson } from "./canonical-json.ts";
import { JsonError, type JsonErrorReason } from "./json-error.ts";

describe("RFC 8785", () => {
  test("sorts keys by UTF-16 units, not by code points or locale [T24]", () => {
    const keys = ["\u20ac", "\r", "\ufb33", "1", "\u{1f600}", "\u0080", "\u00f6"];
    const object = Object.fromEntries(keys.map((key, index) => [key, index]));
    // U+1F600 is encoded as d83d de00, so it sorts before U+FB33 although its code point is higher.
    const order = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\u{1f600}", "\ufb33"];
    const expected = order.map((key) => `${JSON.stringify(key)}:${object[key]}`).join(",");
    expect(canonicalJson(object)).toBe(`{${expected}}`);
  });

  test("sorts few and many keys in the same order [T24]", () => {
    for (let size = 0; size < 40; size += 1) {
      const keys = Array.from({ length: size }, (_, n) => `${(n * 7919) % 101}${n % 2 ? "é" : ""}`);
      const object = Object.fromEntries(keys.map((key) => [key, 0]));
      const sorted = Object.keys(object).sort();
      expect(canonicalJson(object)).toBe(`{${sorted.map((key) => `"${key}":0`).join(",")}}`);
    }
  });

  test("writes numbers as ECMAScript does", () => {
    const numbers: [number, string][] = [
      [0, "0"],
      [-0, "0"],
      [1.0, "1"],
      [-1.5, "-1.5"],
      [4.5, "4.5"],
      [0.002, "0.002"],
      [1e-6, "0.000001"],
      [1e-7, "1e-7"],
      [1e-27, "1e-27"],
      [5e-324, "5e-324"],
      [1e15, "1000000000000000"],
      [333333333.3333333, "333333333.3333333"],
      [9007199254740991, "9007199254740991"],
      [-9007199254740991, "-9007199254740991"],
    ];
    for (const [number, text] of numbers) expect(canonicalJson(number)).toBe(text);
  });

  test("escapes only what must be escaped, in the shortest form", () => {
    const text = '\u20ac$\u000f\nA\'B"\\\\"/\u007f\u2028\b\t\f\r\u0000\u001f';
    const expected = '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/\u007f\u2028\\b\\t\\f\\r\\u0000\\u001f"';
    expect(canonicalJson(text)).toBe(expected);
    // Short and long strings take different ways.
    expect(canonicalJson(text.repeat(9))).toBe(`"${expected.slice(1, -1).repeat(9)}"`);
    for (const plain of ["a".repeat(64), "a".repeat(65)]) {
      expect(canonicalJson(plain)).toBe(`"${plain}"`);
    }
  });

  test("nests without space", () => {
    const value = { b: [1, { d: null, c: [] }], a: { z: true, y: false, x: {} } };
    expect(canonicalJson(value)).toBe(
      '{"a":{"x":{},"y":false,"z":true},"b":[1,{"c":[],"d":null}]}',
    );
  });
});

test("leaves out properties that are undefined, takes objects without prototype", () => {
  expect(canonicalJson({ a: undefined, b: 1, c: undefined })).toBe('{"b":1}');
  expect(canonicalJson({ a: undefined })).toBe("{}");
  expect(canonicalJson(Object.assign(Object.create(null), { b: 1, a: 2 }))).toBe('{"a":2,"b":1}');
  expect(canonicalJson({ toJSON: "only a text" })).toBe('{"toJSON":"only a text"}');
  expect(canonicalJson(Object.freeze([Object.freeze({ a: 1 })]))).toBe('[{"a":1}]');
});

test("writes something that is reachable twice, twice", () => {
  const shared = { a: 1 };
  expect(canonicalJson([shared, shared])).toBe('[{"a":1},{"a":1}]');
});

class Money {
  cents = 1;
}
const sparse = [1];
sparse[2] = 2;
const cycle: unknown[] = [];
cycle.push([cycle]);

const refused: [what: string, value: unknown, reason: JsonErrorReason][] = [
  ["undefined", undefined, "not_json"],
  ["undefined in an array", [undefined], "not_json"],
  ["a hole in an array", sparse, "not_json"],
  ["an empty array with a length", new Array(3), "not_json"],
  ["a function", () => 1, "not_json"],
  ["a function as a property", { a: () => 1 }, "not_json"],
  ["a class", Money, "not_json"],
  ["a symbol", Symbol("x"), "not_json"],
  ["a symbol as a key", { [Symbol("x")]: 1 }, "not_json"],
  ["a bigint", 1n, "not_json"],
  ["a Date", new Date(0), "not_json"],
  ["a Map", new Map([["a", 1]]), "not_json"],
  ["a Set", new Set([1]), "not_json"],
  ["a RegExp", /x/, "not_json"],
  ["an Error", new Error("x"), "not_json"],
  ["a class instance", new Money(), "not_json"],
  ["a Buffer", Buffer.from("x"), "not_json"],
  ["a Uint8Array", new Uint8Array(1), "not_json"],
  ["a boxed string", new String("x"), "not_json"],
  ["a boxed number", new Number(1), "not_json"],
  ["an array of another class", new (class Rows extends Array {})(), "not_json"],
  ["an object with toJSON", { toJSON: () => 1 }, "not_json"],
  ["an object with a hidden toJSON", hidden("toJSON", () => 1), "not_json"],
  ["an object with another prototype", Object.create({ a: 1 }), "not_json"],
  ["a promise", Promise.resolve(1), "not_json"],
  ["NaN", Number.NaN, "unsafe_number"],
  ["Infinity", Number.POSITIVE_INFINITY, "unsafe_number"],
  ["-Infinity", [Number.NEGATIVE_INFINITY], "unsafe_number"],
  ["2^53", 2 ** 53, "unsafe_number"],
  ["-2^53", { a: -(2 ** 53) }, "unsafe_number"],
  ["1e300", 1e300, "unsafe_number"],
  ["a lone surrogate", "a\ud800", "lone_surrogate"],
  ["a lone surrogate in a long text", `${"a".repeat(100)}\udc00`, "lone_surrogate"],
  ["a lone surrogate in a key", { "\ud800": 1 }, "lone_surrogate"],
  ["the key __proto__", JSON.parse('{"__proto__":1}'), "forbidden_key"],
  ["a cycle", cycle, "too_deep"],
  ["depth 65", nest(65), "too_deep"],
  ["depth 200,000", nest(200_000), "too_deep"],
];

describe("refusals", () => {
  test.each(refused)("refuses %s [T24]", (_, value, reason) => {
    expect(refusal(value).reason).toBe(reason);
  });

  test("parser and canonicaliser measure depth alike [T25]", () => {
    expect(canonicalJson(nest(64))).toBe("[".repeat(64) + "]".repeat(64));
  });

  test("a knot of shared references does not become a billion values [T25]", () => {
    let knot: unknown = 1;
    for (let level = 0; level < 30; level += 1) knot = [knot, knot];
    const ms = busyMs(() => expect(refusal(knot).reason).toBe("too_many_nodes"));
    expect(ms).toBeLessThan(1_000);
  });

  test("name the place and not the value", () => {
    const error = refusal({ items: [0, { "unit price": "secret\ud800" }] });
    expect(error).toMatchObject({ path: '$.items[1]["unit price"]', at: -1 });
    expect(error.message).not.toContain("secret");
    expect(refusal({ a: { b: new Date(0) } }).path).toBe("$.a.b");
    expect(refusal([[], [1n]]).path).toBe("$[1][0]");
  });
});

test("reads each property once, so that the checked value is the written one [T26]", () => {
  let reads = 0;
  const value = {
    get amount() {
      reads += 1;
      return reads;
    },
  };
  expect(canonicalJson(value)).toBe('{"amount":1}');
  expect(reads).toBe(1);
});

function refusal(value: unknown): JsonError {
  try {
    canonicalJson(value);
  } catch (error) {
    expect(error).toBeInstanceOf(JsonError);
    return error as JsonError;
  }
  throw new Error("accepted");
}

function nest(depth: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < depth; level += 1) value = [value];
  return value;
}

function hidden(key: string, value: unknown): object {
  return Object.defineProperty({}, key, { value, enumerable: false });
}
