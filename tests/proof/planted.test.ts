import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { BUGS } from "../../proof/planted/bugs.ts";
import { plant } from "../../proof/planted/plant.ts";
import { plantedPage } from "../../proof/report.ts";

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

test("every planted bug names a test that is there: its title is among those of its file and of what that imports", () => {
  const lost = BUGS.filter(({ caughtBy }) => {
    const title = new RegExp(caughtBy.title);
    const all = textsOf(caughtBy.file);
    return !all.some((text) => title.test(text)) && !filledIn(all).some((text) => title.test(text));
  });
  expect(lost.map(({ name, caughtBy }) => `${name}: ${caughtBy.title}`)).toEqual([]);
});

test("docs/proof/planted.md lists every planted bug: `npm run proof -- --list` writes it [G23]", () => {
  expect(readFileSync("docs/proof/planted.md", "utf8")).toBe(plantedPage(BUGS));
});

const PLACE = /%[sdij]|\$[a-z]+/i;

/** Titles of tables, with every short text of their file in their first place. */
function filledIn(texts: readonly string[]): readonly string[] {
  const tables = texts.filter((title) => PLACE.test(title) && title.length > 10);
  const short = texts.filter((text) => text.length < 80 && !PLACE.test(text));
  return tables.flatMap((title) => short.map((text) => title.replace(PLACE, () => text)));
}

/** Every text in a test file and in what it imports of tests and shared cases: a title may stand in any of them. */
function textsOf(file: string, seen = new Set<string>()): readonly string[] {
  if (seen.has(file) || !existsSync(file)) return [];
  seen.add(file);
  const source = readFileSync(file, "utf8");
  const own = source.matchAll(/"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g);
  const imported = [...source.matchAll(/from "(\.[^"]+)"/g)]
    .map(([, from = ""]) => path.join(path.dirname(file), from))
    .filter((from) => /^tests\/|conformance|-cases\.ts$/.test(from));
  return [
    ...[...own].map(([, plain = "", template = ""]) => plain + template),
    ...imported.flatMap((from) => textsOf(from, seen)),
  ];
}

test("a place that is gone, or there twice, is told and not passed over", () => {
  const bug = { ...BUGS[0], file: "a.ts", right: "x", wrong: "y" } as (typeof BUGS)[number];
  expect(() => plant(bug, `${process.cwd()}/a.ts`, "nothing")).toThrow("0 times");
  expect(() => plant(bug, `${process.cwd()}/a.ts`, "x x")).toThrow("2 times");
  expect(plant(bug, `${process.cwd()}/b.ts`, "x")).toBeUndefined();
});
