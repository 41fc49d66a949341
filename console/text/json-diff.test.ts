import { expect, test } from "vitest";
import { jsonDiff } from "./json-diff.ts";

test("JSON diff: lists only what differs, each with its path", () => {
  const before = { a: 1, b: { c: [1, 2], gone: true }, same: "x" };
  const after = { a: 2, b: { c: [1, 3, 4] }, same: "x", fresh: null };
  expect(jsonDiff(before, after)).toEqual([
    { path: "$.a", before: 1, after: 2 },
    { path: "$.b.c[1]", before: 2, after: 3 },
    { path: "$.b.c[2]", before: undefined, after: 4 },
    { path: "$.b.gone", before: true, after: undefined },
    { path: "$.fresh", before: undefined, after: null },
  ]);
  expect(jsonDiff({ a: 1, b: 2 }, { b: 2, a: 1 })).toEqual([]);
  expect(jsonDiff([1], { 0: 1 })).toEqual([{ path: "$", before: [1], after: { 0: 1 } }]);
});

test("JSON diff: names of prototype members are ordinary names", () => {
  const odd = JSON.parse('{"__proto__":1,"constructor":2}');
  expect(jsonDiff({}, odd).map(({ path }) => path)).toEqual(["$.__proto__", "$.constructor"]);
});
