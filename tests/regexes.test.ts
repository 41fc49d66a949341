// No regular expression of ours takes exponential time.

import { expect, test } from "vitest";
import { dangersOf, regexesIn } from "./support/regex-danger.ts";
import { filesIn, isTest } from "./support/source-files.ts";

const BAD = [
  "^(?:\\s+|--[^\\n]*(?:\\n|$)|\\/\\*[\\s\\S]*?\\*\\/)*(?:SELECT|WITH|VALUES)\\b",
  "(a+)+",
  "(a*)*",
  "(?:a|a)*",
  "(?:a|ab)+c",
  "(?:[\\w.]+\\.)+x",
  "((ab)*)*",
  "(?:\\d+,?)+",
  "(.*a){12}",
  "(?:x?)*",
  "(?=(?:a+)+b)c",
  "(?:\\.\\.?a*)*",
  "(?:-a+|a)*",
];
const GOOD = [
  "^[a-z]+(?:-[a-z]+)*$",
  '"(?:\\\\.|[^"\\\\])*"',
  "a+b+c*",
  "(?:ab|cd)*",
  "(?:/[^/]*)*",
  "(?:a{1,3}){2}",
  "^a(?:\\.a(?:[a_-]*a)?)*$",
  "\\[(?:\\\\[\\s\\S]|[^\\]\\\\])*\\]",
];

test("regular expressions: the check tells those that can take exponential time [H6]", () => {
  expect(BAD.filter((source) => dangersOf(source).length === 0)).toEqual([]);
  expect(GOOD.filter((source) => dangersOf(source).length > 0)).toEqual([]);
});

const source = ["src", "console"]
  .flatMap(filesIn)
  .filter((file) => /\.tsx?$/.test(file) && !isTest(file) && !file.includes("node_modules"));

test("regular expressions: none in src or console can take exponential time [H6]", () => {
  const all = source.flatMap((file) => regexesIn(file).map((regex) => ({ file, ...regex })));
  expect(all.length).toBeGreaterThan(100);
  const problems = all.flatMap(({ file, pattern, flags }) =>
    dangersOf(pattern, flags).map((danger) => `${file}: /${pattern}/${flags}: ${danger}`),
  );
  expect(problems).toEqual([]);
});
