import fc from "fast-check";
import { expect, test } from "vitest";
import { busyMs } from "../../../tests/support/busy-time.ts";
import { findJson } from "./find-json.ts";

const values = (text: string) => findJson(text).values;

test("an object is found as written, alone, in a fence or in the middle of prose [I-05]", () => {
  const object = '{ "a": [1, -2.5e3, true, null], "b": {"c": "}\\"{"} }';
  const around = [
    object,
    ` \n${object}\n `,
    `\`\`\`json\n${object}\n\`\`\``,
    `Sure! Here it is: ${object}. Hope that helps.`,
    `if (x) { return } // ${object}`,
    `an open { bracket, a [list] and a "quote, then ${object}`,
    `{{${object}}}`,
    `{ "half": ${object}x`.replace('{ "half": ', "{half: "),
  ];
  for (const text of around) expect(values(text), text).toEqual([object]);
});

test("brackets and quotes inside of strings do not count [I-05]", () => {
  for (const inner of ["}", "{", "]", '\\"', "\\\\", '\\\\\\"}', "```", "'"]) {
    const object = `{"a":"${inner}"}`;
    expect(values(`x ${object} y`)).toEqual([object]);
  }
});

test("several values are found in order, arrays as arrays and never as what stands in them [I-05]", () => {
  expect(values('{"a":1}{"b":2} and [{"c":3}], [1]')).toEqual([
    '{"a":1}',
    '{"b":2}',
    '[{"c":3}]',
    "[1]",
  ]);
});

test("what is not JSON is not found, and is left in the rest [I-05]", () => {
  const broken = [
    "",
    "{",
    "}",
    '{"a"}',
    "{'a':1}",
    "{a:1}",
    '{"a":1,}',
    '{"a":NaN}',
    '{"a":+1}',
    '{"a":01}',
    '{"a":"\n"}',
    '{"a":1 "b":2}',
    '{"a":"never closed',
    "[1,2",
    '{"draft":{"a":1},oops}',
    '[{"a":1},{"b":2} oops',
    "[,]",
  ];
  for (const text of broken) expect(findJson(text), text).toEqual({ values: [], rest: text });
});

test("the rest is everything around, so nothing a model says can hide [I-05]", () => {
  expect(findJson('before {"a":1} between [2] after').rest).toBe("before \n between \n after");
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.string(), fc.json())), (parts) => {
      const text = parts.join(" ");
      const found = findJson(text);
      const kept = found.values.join("").length + found.rest.length - found.values.length;
      expect(kept).toBe(text.length);
      for (const value of found.values) expect(() => JSON.parse(value)).not.toThrow();
    }),
  );
});

test("whatever JSON writes is found whole [I-05]", () => {
  const container = fc
    .jsonValue({ maxDepth: 6 })
    .filter((value) => typeof value === "object" && value !== null);
  fc.assert(
    fc.property(container, fc.constantFrom(0, 2), (value, indent) => {
      const json = JSON.stringify(value, null, indent);
      expect(values(`Answer:\n${json}\nDone.`)).toEqual([json]);
    }),
  );
});

test("nesting too deep to be trusted is refused and not cut into pieces [I-05]", () => {
  const nested = (depth: number) => `${'{"a":'.repeat(depth - 1)}{}${"}".repeat(depth - 1)}`;
  expect(values(nested(64))).toHaveLength(1);
  for (const depth of [65, 66, 128, 100_000]) {
    expect(() => findJson(nested(depth))).toThrow(RangeError);
  }
  expect(() => findJson("[".repeat(1_000_000))).toThrow(RangeError);
});

test("texts made to be slow are read in linear time [I-05 T27]", () => {
  const size = 400_000;
  const hostile = [
    "{".repeat(size),
    '{"'.repeat(size / 2),
    '{"a":'
      .repeat(60)
      .concat("x")
      .repeat(size / 300),
    '{"a" '.repeat(size / 5),
    `{"${"\\".repeat(size)}`,
    `{${" ".repeat(size)}`,
    `{"a":${"1".repeat(size)}`,
    `{"a":"${"{".repeat(size)}`,
    '{"a":1'.concat(" ".repeat(1000)).repeat(size / 1000),
    "{ ".repeat(size / 2),
    '{}{"a":'.repeat(size / 7),
    "[1,"
      .repeat(30)
      .concat("x")
      .repeat(size / 90),
  ];
  for (const text of hostile) {
    const ms = busyMs(() => {
      try {
        findJson(text);
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
    });
    // Quadratic reading would take minutes; the wide margin is for slow machines.
    expect(ms, text.slice(0, 20)).toBeLessThan(1_000);
  }
});
