import { expect, test } from "vitest";
import { manualClock } from "../../util/clock.ts";
import { seededRandom } from "../../util/random.ts";
import { memoryEngine } from "../memory/index.ts";
import type { EngineCase } from "./case.ts";
import { decisionCases, engineCases, harnessOf, runCases, START } from "./index.ts";

const open = async () => {
  const clock = manualClock(START);
  return harnessOf({ engine: memoryEngine({ clock, random: seededRandom(1) }), clock });
};

test("the suite runs outside of a test runner and answers with data", async () => {
  const results = [
    ...(await runCases(open, decisionCases)),
    ...(await runCases(open, engineCases)),
  ];
  expect(results).toHaveLength(decisionCases.length + engineCases.length);
  expect(results.filter(({ outcome }) => outcome === "failed")).toEqual([]);
  const skipped = results.filter(({ outcome }) => outcome === "skipped");
  const needy = engineCases.filter(({ needs }) => needs !== undefined);
  expect(skipped.map(({ name }) => name)).toEqual(needy.map(({ name }) => name));
  for (const { reason } of skipped) expect(reason).toMatch(/^the store is not /);
});

test("no two cases have the same name", () => {
  const names = [...decisionCases, ...engineCases].map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

test("a case that throws fails alone, and every store is closed", async () => {
  let closed = 0;
  const fault = new Error("broken promise");
  const cases: EngineCase[] = [
    { name: "good", run: async () => {} },
    { name: "bad", run: () => Promise.reject(fault) },
    { name: "good again", run: async () => {} },
  ];
  const counted = async () => {
    const harness = await open();
    return {
      ...harness,
      async close() {
        closed += 1;
        await harness.close();
      },
    };
  };
  expect(await runCases(counted, cases)).toEqual([
    { name: "good", outcome: "passed" },
    { name: "bad", outcome: "failed", error: fault },
    { name: "good again", outcome: "passed" },
  ]);
  expect(closed).toBe(3);
});

test("a store that cannot be opened, or not be closed, fails its case", async () => {
  const fault = new Error("stuck");
  const cases: EngineCase[] = [{ name: "any", run: async () => {} }];
  const failed = [{ name: "any", outcome: "failed", error: fault }];
  expect(await runCases(() => Promise.reject(fault), cases)).toEqual(failed);
  const unclosable = async () => ({ ...(await open()), close: () => Promise.reject(fault) });
  expect(await runCases(unclosable, cases)).toEqual(failed);
});
