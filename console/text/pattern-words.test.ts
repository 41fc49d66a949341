import { expect, test } from "vitest";
import type { Json } from "./canonical.ts";
import { patternOf, testWords } from "./pattern-words.ts";

const CASES: readonly (readonly [{ readonly [key: string]: Json }, string])[] = [
  [{ equals: "a b" }, 'is "a b"'],
  [{ equals: { b: 1, a: [null] } }, 'is {"a":[null],"b":1}'],
  [{ oneOf: ["a", 2, null] }, 'is one of "a", 2, null'],
  [{ atLeast: 1 }, "is at least 1"],
  [{ atMost: 5 }, "is at most 5"],
  [{ atLeast: -1, atMost: 5, optional: true }, "is from -1 to 5 (or left out)"],
  [{ like: "INV-*" }, 'looks like "INV-*"'],
  [{ any: true }, "is anything"],
  // What this page does not know is not turned into something that it knows.
  [{ any: "yes" }, '{"any":"yes"}'],
  [{ equals: 1, any: true }, '{"any":true,"equals":1}'],
  [{}, "{}"],
];

test.each(CASES)("standing rules: a condition is described exactly: %j [T13]", (rule, words) => {
  expect(testWords(rule)).toBe(words);
});

test("standing rules: a new rule starts as narrow as the call it was made from", () => {
  expect(patternOf({ sku: "a", by: 2 })).toEqual({ sku: { equals: "a" }, by: { equals: 2 } });
  expect(patternOf([1])).toEqual({});
});
