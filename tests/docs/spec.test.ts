// docs/spec against the titles of the tests: every row has a test that names it, and every id in a title is explained.

import { expect, test } from "vitest";
import { PARTS, rowsOf, specRows, TEXTS } from "../behaviours/rows.ts";
import { filesIn, read, stringsIn, tableRows } from "../support/source-files.ts";

/** Rows that no single test proves, each with the reason. */
const NO_TEST: Readonly<Record<string, string>> = {
  G22: "there is no earlier release to upgrade from",
  G23: "judged by proof/planted as a whole",
};

/** Rows of one letter on a page, numbered R1, R2 … */
const LETTERS: readonly (readonly [letter: string, page: string])[] = [
  ["R", "threats"],
  ["T", "threats"],
  ["G", "reliability"],
  ["I", "reliability"],
];

const ID = /^(?:(?:S[0-4]|I)-\d{2,3}|[A-Z]{1,2}\d+[a-z]?)$/;

const findings = tableRows("docs/spec/findings.md", "id").map((row) => row["id"] ?? "");
const lettered = LETTERS.flatMap(([letter, page]) => idsOf(letter, page));
const rows = PARTS.flatMap(rowsOf);
const explained = new Set([...rows, ...lettered, ...findings]);

/** These test the counting itself: their ids are data, not claims. */
const testFiles = ["src", "tests"]
  .flatMap(filesIn)
  .filter((file) => /\.tsx?$/.test(file) && !/^tests\/(?:behaviours|proof|docs)\//.test(file))
  .filter((file) => file.startsWith("tests/") || /\.test\.|conformance/.test(file));
const strings = testFiles.flatMap((file) => stringsIn(file).map((text) => ({ file, text })));
const titles = strings.flatMap(({ file, text }) => {
  const ids = idsAtEnd(text);
  return ids.length > 0 ? [{ file, text, ids }] : [];
});
/** Titles made in a loop take their ids from constants such as `"S0-28"`, also inside of `${}`. */
const named = new Set([
  ...titles.flatMap(({ ids }) => ids),
  ...strings.flatMap(({ text }) => /^(?:S[0-4]|I)-\d{2,3}$/.exec(text)?.[0] ?? []),
  ...strings.flatMap(({ text }) => text.match(/(?<=")(?:S[0-4]|I)-\d{2,3}(?=")/g) ?? []),
]);

test("every page numbers its rows in order and without gaps", () => {
  for (const [letter, page] of LETTERS) {
    const ids = idsOf(letter, page);
    expect(ids).toEqual(ids.map((_, index) => `${letter}${index + 1}`));
  }
  expect(PARTS.flatMap(({ page }) => specRows(page)).map((row) => row["row"])).toEqual(rows);
  expect(findings.filter((id, index) => findings.indexOf(id) !== index)).toEqual([]);
  expect(explained.size, "an id with two meanings").toBe(
    rows.length + lettered.length + findings.length,
  );
  expect(lettered.length, "void: too few rows").toBe(30 + 42 + 24 + 30);
});

test("every id at the end of a test title is explained in docs/spec", () => {
  const unknown = titles.flatMap(({ file, text, ids }) =>
    ids.filter((id) => !explained.has(id)).map((id) => `${id} in ${file}: ${text}`),
  );
  expect(unknown).toEqual([]);
  expect(titles.length, "void: too few titles").toBeGreaterThan(1_000);
});

test("every row and every finding is named by a test title", () => {
  const silent = [...explained].filter((id) => !named.has(id) && NO_TEST[id] === undefined);
  expect(silent).toEqual([]);
  expect(Object.keys(NO_TEST).filter((id) => named.has(id) || !explained.has(id))).toEqual([]);
});

test("rows say something, in whole sentences, and each says something else", () => {
  const said = [...TEXTS.values()];
  expect(said.filter((text) => !/^[A-Z`"].*[.]$/s.test(text))).toEqual([]);
  expect(said.filter((text, index) => said.indexOf(text) !== index)).toEqual([]);
});

test("prose in docs/spec wraps at 120 characters", () => {
  const long = filesIn("docs/spec").flatMap((file) =>
    read(file)
      .split("\n")
      .filter((line) => line.length > 122 && !line.startsWith("|"))
      .map((line) => `${file}: ${line}`),
  );
  expect(long).toEqual([]);
});

function idsOf(letter: string, page: string): readonly string[] {
  const id = new RegExp(`^${letter}\\d+$`);
  return specRows(page)
    .map((row) => row["row"] ?? "")
    .filter((row) => id.test(row));
}

/** The ids in the brackets that end a title, `[S0-62 I7] [R9]`; what a template inserts there is left out. */
function idsAtEnd(text: string): readonly string[] {
  const [end = ""] = /(?:\s*\[[^[\]]*\])+$/.exec(text.replaceAll(/\$\{[^}]*\}/g, "")) ?? [];
  const words = end.split(/[\s,[\]]+/).filter((word) => word !== "");
  return words.some((word) => ID.test(word)) ? words : [];
}
