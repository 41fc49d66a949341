import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { BUGS } from "../../proof/planted/bugs.ts";
import { plant } from "../../proof/planted/plant.ts";

test("every planted bug still finds its place in the product, exactly once, and changes it", () => {
  for (const bug of BUGS) {
    const source = readFileSync(bug.file, "utf8");
    const planted = plant(bug, `${process.cwd()}/${bug.file}`, source);
    expect(planted, bug.name).not.toBe(source);
    expect(planted, bug.name).toBeDefined();
  }
});

test("G23 there are at least twenty, each with a name of its own", () => {
  const names = BUGS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(names.length).toBeGreaterThanOrEqual(20);
});

test("titles of planted bugs are patterns: an id in plain brackets would run nearly every test of its file", () => {
  const open = BUGS.filter(({ caughtBy }) => /(?<!\\)\[/.test(caughtBy.title));
  expect(open.map(({ name }) => name)).toEqual([]);
});

test("a place that is gone, or there twice, is told and not passed over", () => {
  const bug = { ...BUGS[0], file: "a.ts", right: "x", wrong: "y" } as (typeof BUGS)[number];
  expect(() => plant(bug, `${process.cwd()}/a.ts`, "nothing")).toThrow("0 times");
  expect(() => plant(bug, `${process.cwd()}/a.ts`, "x x")).toThrow("2 times");
  expect(plant(bug, `${process.cwd()}/b.ts`, "x")).toBeUndefined();
});
