import { expect, test } from "vitest";
import { type Evidence, isMet, unmetNeeds } from "../model/delegation.ts";

import { type Claim, notGreen } from "./verify.ts";

const claim = (more: Partial<Claim> = {}): Claim => ({
  command: "npm test",
  exitCode: 0,
  keyOutput: "214 passed, 0 failed, 0 skipped",
  verdict: "passed",
  conclusion: "All tests pass.",
  ...more,
});

test("a check that passed is green [I-64]", () => {
  const green = [
    {},
    { conclusion: "The report is right: 3 of 3 files checked." },
    { conclusion: "All 12 tests pass, 0 skipped, nothing pending." },
    { keyOutput: "# tests 9\n# pass 9\n# skipped 0\n# todo 0" },
    { conclusion: "Verified against the specification." },
    { conclusion: "The build works and was tested on both systems." },
  ];
  for (const more of green) expect(notGreen(claim(more)), JSON.stringify(more)).toBeUndefined();
});

test("a failed check, another exit code and a blank field are not green [I-64]", () => {
  const red: Partial<Claim>[] = [
    { verdict: "failed" },
    { exitCode: 1 },
    { exitCode: -1 },
    { keyOutput: " \n" },
    { keyOutput: "..." },
    { conclusion: "" },
    { command: "  " },
  ];
  for (const more of red) expect(notGreen(claim(more)), JSON.stringify(more)).toBeDefined();
});

test.each([
  "to be verified later",
  "To be verified.",
  "TO-BE-VERIFIED later",
  "Will be tested later",
  "will verify tomorrow",
  "We will manually check this",
  "needs to be confirmed",
  "Not yet tested",
  "was not verified",
  "never been tested",
  "verification follows",
  "testing pending",
  "TBD",
  "todo",
  "untested, but should pass",
  "It probably works.",
  "Assumed to be fine",
  "could not run the tests",
  "did not execute the suite",
  "Tests skipped for now",
  "check later",
  "t\u200bo b\u200be ver\u00adified la\u200dter",
  "ｔｏ ｂｅ ｖｅｒｉｆｉｅｄ",
  "待验证",
  "稍后验证",
])("the conclusion %j is not accepted as green [I-64]", (conclusion) => {
  expect(notGreen(claim({ conclusion }))).toMatch(/postponed|no conclusion/);
});

test("output that postpones the check is not green [I-64]", () => {
  expect(notGreen(claim({ keyOutput: "to be verified later" }))).toMatch(/postponed/);
});

const evidence = (more: Partial<Evidence> = {}): Evidence => ({
  promiseId: "p",
  need: "tests",
  command: "npm test",
  exitCode: 0,
  keyOutput: "ok",
  conclusion: "ok",
  observed: true,
  green: true,
  key: "k",
  sessionId: "s",
  at: "2026-11-15T06:00:00.000Z",
  ...more,
});

test("a promise is met when the newest evidence for each need is green [I-61]", () => {
  const needs = [{ name: "tests", command: "npm test" }, { name: "docs" }];
  const promise = { id: "p", statement: "it works", evidence: needs };
  const docs = evidence({ need: "docs", command: "lint docs" });
  expect(unmetNeeds(promise, []).map(({ name }) => name)).toEqual(["tests", "docs"]);
  expect(unmetNeeds(promise, [docs]).map(({ name }) => name)).toEqual(["tests"]);
  expect(isMet(promise, [docs, evidence()])).toBe(true);
  // A check that failed since, another promise's, and another command do not count.
  expect(isMet(promise, [docs, evidence(), evidence({ green: false })])).toBe(false);
  expect(isMet(promise, [docs, evidence({ green: false }), evidence()])).toBe(true);
  expect(isMet(promise, [docs, evidence({ promiseId: "q" })])).toBe(false);
  expect(isMet(promise, [docs, evidence({ command: "true" })])).toBe(false);
  expect(isMet({ ...promise, evidence: [] }, [])).toBe(true);
});
