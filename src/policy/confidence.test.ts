import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CONFIDENCE_KEY } from "../tools/registry.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import type { JsonValue } from "../util/json.ts";
import { parseStrictJson } from "../util/strict-json.ts";
import { checkConfidence } from "./before-call.ts";

const at80 = { min: 80 };
const passes = (input: JsonValue | string, min = 80) => checkConfidence(input, { min }).ok;

test("the key is _confidence, and another name can be chosen [S2-22]", () => {
  expect(CONFIDENCE_KEY).toBe("_confidence");
  expect(passes('{"_confidence":90}')).toBe(true);
  expect(passes('{"_flyto_confidence":90}')).toBe(false);
  const original = { min: 80, key: "_flyto_confidence" };
  expect(checkConfidence('{"_flyto_confidence":90,"a":1}', original)).toEqual({
    ok: true,
    input: '{"a":1}',
  });
  expect(checkConfidence('{"_confidence":90}', original).ok).toBe(false);
});

test("a minimum of 0 gives back the very same input without reading it [S2-23]", () => {
  for (const text of ["", "not json", '{"a":1,"a":2}', "[1,", "null", "\ud800", "{".repeat(1e5)]) {
    expect(checkConfidence(text, { min: 0 })).toEqual({ ok: true, input: text });
  }
  const trap = new Proxy({} as { [key: string]: JsonValue }, {
    get: () => expect.unreachable("the input was read"),
    has: () => expect.unreachable("the input was read"),
    ownKeys: () => expect.unreachable("the input was read"),
    getOwnPropertyDescriptor: () => expect.unreachable("the input was read"),
  });
  const answer = checkConfidence(trap, { min: 0 });
  expect(answer.ok && Object.is(answer.input, trap)).toBe(true);
});

test("with the gate off the reserved key stays where it is [S2-24]", () => {
  expect(checkConfidence('{"_confidence":1}', { min: 0 })).toEqual({
    ok: true,
    input: '{"_confidence":1}',
  });
  const input = { _confidence: 1, a: 2 };
  expect(checkConfidence(input, { min: 0 })).toEqual({ ok: true, input });
});

test("a missing key fails, and the message names key, range and minimum [S2-25]", () => {
  for (const input of ['{"a":1}', { a: 1 }, "{}"]) {
    const answer = checkConfidence(input, at80);
    if (answer.ok) return expect.unreachable("passed without an estimate");
    expect(answer.message).toContain('"_confidence"');
    expect(answer.message).toContain("from 0 to 100");
    expect(answer.message).toContain("at least 80");
  }
  return undefined;
});

test("a value below the minimum fails, and the message states both [S2-26]", () => {
  const answer = checkConfidence('{"_confidence":61.5}', { min: 82 });
  if (answer.ok) return expect.unreachable("passed below the minimum");
  expect(answer.message).toContain("61.5");
  expect(answer.message).toContain("minimum of 82");
  return undefined;
});

test("a value at or above the minimum passes [S2-27]", () => {
  for (const value of [80, 80.0001, 99, 100]) expect(passes({ _confidence: value })).toBe(true);
  expect(passes({ _confidence: 79.9999 })).toBe(false);
  expect(passes({ _confidence: 100 }, 100)).toBe(true);
  expect(passes({ _confidence: 0.001 }, 0.001)).toBe(true);
});

describe("only the reserved key is removed [S2-28]", () => {
  test.each([
    ['{"_confidence":90}', "{}"],
    ['{"_confidence":90,"a":1}', '{"a":1}'],
    ['{"a":1,"_confidence":90}', '{"a":1}'],
    ['{"a":1,"_confidence":90,"b":2}', '{"a":1,"b":2}'],
    ['{ "_confidence" : 90 , "a" : 1.50 }', '{  "a" : 1.50 }'],
    ['{\n  "a": 1e2,\n  "_confidence": 90\n}\n', '{\n  "a": 1e2\n}\n'],
    ['{"a":{"_confidence":3},"_confidence":90}', '{"a":{"_confidence":3}}'],
    [
      '{"a":"\\u0041,\\"_confidence\\":1","_confidence":9e1}',
      '{"a":"\\u0041,\\"_confidence\\":1"}',
    ],
    ['{"\\u005fconfidence":90,"z":[1,{"b":[]}],"a":-0}', '{"z":[1,{"b":[]}],"a":-0}'],
    ['  {"b":[1,2],"_confidence":1e2,"c":"}"}  ', '  {"b":[1,2],"c":"}"}  '],
  ])("%s", (text, rest) => {
    expect(checkConfidence(text, at80)).toEqual({ ok: true, input: rest });
  });

  test("for a value the other properties keep their values and order", () => {
    const inner = { x: [1] };
    const answer = checkConfidence({ z: inner, _confidence: 90, a: null, "": "" }, at80);
    if (!answer.ok) return expect.unreachable(answer.message);
    const rest = answer.input as Record<string, unknown>;
    expect(Object.entries(rest)).toEqual([
      ["z", inner],
      ["a", null],
      ["", ""],
    ]);
    return expect(rest["z"]).toBe(inner);
  });

  test("for any text the result parses to the input without the key and removes nothing else", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 6 }),
        fc.nat(6),
        fc.constantFrom("", " ", "\n\t"),
        (object, place, space) => {
          const members = Object.entries(object)
            .filter(([name]) => name !== "__proto__" && name !== "_confidence")
            .map(([name, value]) => `${JSON.stringify(name)}${space}:${JSON.stringify(value)}`);
          const without = `{${members.join(`,${space}`)}}`;
          try {
            parseStrictJson(without);
          } catch {
            return; // fast-check makes numbers and strings that the strict parser does not take.
          }
          members.splice(place, 0, `"_confidence"${space}:${space}93`);
          const answer = checkConfidence(`{${members.join(`,${space}`)}}`, at80);
          if (!answer.ok) return expect.unreachable(answer.message);
          expect(canonicalJson(parseStrictJson(answer.input))).toBe(
            canonicalJson(parseStrictJson(without)),
          );
          for (const member of members.filter((text) => !text.startsWith('"_confidence"'))) {
            expect(answer.input).toContain(member);
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});

test("an input that is not a JSON object fails [S2-29]", () => {
  const texts = ["[]", '[{"_confidence":99}]', '"x"', "null", "99", "true", "", "{", '{"a":1}}'];
  for (const text of [...texts, '{"_confidence":99', "{'_confidence':99}", "\ufeff{}"]) {
    expect(passes(text), text).toBe(false);
  }
  for (const value of [null, 99, true, [], [99], ["_confidence"]]) {
    expect(passes(value)).toBe(false);
  }
});

test("an ambiguous text fails [S2-29]", () => {
  for (const text of [
    '{"_confidence":10,"_confidence":99}',
    '{"_confidence":99,"a":1,"a":2}',
    '{"_confidence":99,"a":1e400}',
    '{"_confidence":99,"a":"\\ud800"}',
    `{"_confidence":99,"a":${"[".repeat(70)}${"]".repeat(70)}}`,
  ]) {
    expect(passes(text), text).toBe(false);
  }
});

test("a missing value is never read as 100 [S2-30]", () => {
  for (const input of [{}, { confidence: 100 }, { _Confidence: 100 }, { " _confidence": 100 }]) {
    expect(passes(input)).toBe(false);
    expect(passes(JSON.stringify(input))).toBe(false);
    expect(passes(input, 0.0001)).toBe(false);
  }
  const inherited = Object.create({ _confidence: 100 }) as { [key: string]: JsonValue };
  expect(passes(inherited)).toBe(false);
  expect(passes({ nested: { _confidence: 100 } })).toBe(false);
});

// biome-ignore format: a table
const weird: readonly unknown[] = [
  Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, -1, -0.0001, 100.0001, 101,
  1e3, Number("1e309"), Number("-1e309"), Number.MAX_VALUE, Number.MIN_VALUE, 2 ** 53, "1", "80", "99", "100", "99%",
  " 99 ", "0x63", "1e2", "high", "", "true", "NaN", "Infinity", "９９", "٩٩", true, false, null,
  undefined, [], [99], ["99"], [[99]], {}, { value: 99 }, { valueOf: () => 99 }, () => 99,
  Symbol("99"), 99n, new Number(99), new String("99"), new Date(99), /99/, new Map([["_confidence", 99]]),
  { toString: () => "99" }, { [Symbol.toPrimitive]: () => 99 }, new Uint8Array([99]), 79, 79.999999,
];

test("no unusual value relaxes the gate [S2-31 T28]", () => {
  expect(weird.length).toBeGreaterThanOrEqual(50);
  for (const value of weird) {
    const input = { _confidence: value } as unknown as JsonValue;
    expect(checkConfidence(input, at80).ok, String(typeof value)).toBe(false);
  }
});

test("no unusual spelling relaxes the gate [S2-31 T28]", () => {
  // biome-ignore format: a table
  const spellings = [
    "NaN", "Infinity", "-Infinity", "-0", "-1", "1e309", "100.0001", "1e3", "+90", "090", "90.",
    ".9e2", "0x5a", "9_0", "90n", '"90"', '"100"', "true", "null", "undefined", "[]", "[90]",
    "{}", '{"_confidence":90}', "90 90", "90,", "'90'", "9e+", "٩٠", "90%", "1/0", "90//x", "--90",
    "9".repeat(400), '"\\u0039\\u0030"', "79.9999999",
  ];
  for (const spelling of spellings) {
    expect(passes(`{"_confidence":${spelling}}`), spelling).toBe(false);
  }
});

test("a minimum outside 0 to 100 closes the gate instead of opening it [T28]", () => {
  for (const min of [Number.NaN, -1, -0.1, 100.1, Number.POSITIVE_INFINITY, "0", null, undefined]) {
    const answer = checkConfidence('{"_confidence":100}', { min: min as number });
    expect(answer.ok, String(min)).toBe(false);
  }
});

test("the same input gets the same answer, and the input itself is not changed [T28]", () => {
  const input = Object.freeze({ _confidence: 90, a: 1 });
  expect(checkConfidence(input, at80)).toEqual(checkConfidence(input, at80));
  expect(input).toEqual({ _confidence: 90, a: 1 });
});
