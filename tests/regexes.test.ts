// No regular expression of ours takes exponential time, and none takes quadratic time on long rows of one sign.

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

const ROWS = [...` \n\taA0./-_:=,'"([{<>*$\\#~@%+é漢\u200b`].map(
  (sign) => `${sign.repeat(50_000)}\u0001`,
);

/** Each with the reason why it cannot get a long input. */
const BOUNDED: readonly string[] = [
  // Words of a command that was taken apart: `inspectionProblem` allows 256 brackets in all.
  "[*?]|\\[[^\\]]+\\]|\\{[^}]*,",
  "\\[[^\\]]*\\]|\\{[^}]*\\}|[?[\\]{}]",
];

test("regular expressions: none in src takes quadratic time on a long row of one sign [H6]", {
  timeout: 120_000,
}, () => {
  const all = source
    .filter((file) => file.startsWith("src/") && !file.startsWith("src/crashkit/"))
    .flatMap((file) => regexesIn(file).map((regex) => ({ file, ...regex })))
    .filter(({ pattern }) => !BOUNDED.includes(pattern));
  const slow = all.flatMap(({ file, pattern, flags }) => {
    const regex = new RegExp(pattern, flags);
    // The time of this thread, so that a busy machine does not matter: quadratic ones take seconds, others next to nothing.
    const isSlow = ROWS.some((row) => cpuMsOf(() => row.search(regex)) > 400);
    return isSlow ? [`${file}: /${pattern}/${flags}`] : [];
  });
  expect(slow).toEqual([]);
});

function cpuMsOf(work: () => void): number {
  const usage = () => process.threadCpuUsage?.() ?? process.cpuUsage();
  const before = usage();
  work();
  const after = usage();
  return (after.user - before.user) / 1_000;
}
