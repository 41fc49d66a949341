import { expect, test } from "vitest";
import { record } from "../support/record.ts";
import { filesIn, isTest, read } from "../support/source-files.ts";

/** Titles of tests, of groups of tests and of conformance cases. Whether they pass is the other tests' business. */
const TITLE =
  /(?:test|describe|forEachStore)(?:\.\w+)?(?:\((?:[^()`"]|\([^()]*\))*\))?\(\s*(["`])((?:(?!\1)[\s\S])+)\1|name: "([^"]+)"/g;

const titles = ["tests", "src", "console"]
  .flatMap(filesIn)
  .filter((file) => isTest(file) || file.endsWith("-cases.ts"))
  .flatMap((file) =>
    [...read(file).matchAll(TITLE)].map(([, , test, named]) => test ?? named ?? ""),
  );

const named = (letter: string, count: number) =>
  Array.from({ length: count }, (_, at) => `${letter}${at + 1}`).filter((code) =>
    titles.some((title) => new RegExp(`\\b${code}\\b`).test(title)),
  );

test("every defect of the corpus, and the first twenty threats, have a test with their code in the title [G19]", () => {
  expect(titles.length, "void: no titles found").toBeGreaterThan(1_000);
  const [defects, threats] = [named("R", 30), named("T", 42)];
  const figures = {
    "corpus rows with a test": defects.length,
    "threats with a test": threats.length,
  };
  record({ goal: "G19", what: "rows of the corpus and of the threat table", figures });
  const wanted = (letter: string, count: number) =>
    Array.from({ length: count }, (_, at) => `${letter}${at + 1}`);
  expect(defects).toEqual(wanted("R", 30));
  expect(threats).toEqual(expect.arrayContaining(wanted("T", 20)));
});
