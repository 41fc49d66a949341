// Real processes are killed with SIGKILL at the points of the threat model's Part 4; then others recover. What production has
// seen (a process of its own, with a ledger of its own), what the store says and what the trail tells must agree.

import { expect, test } from "vitest";
import type { CasesRun } from "../../src/crashkit/cases/run-cases.ts";
import { crashAll, SEED, STORES } from "../support/crash-run.ts";
import { record } from "../support/record.ts";
import { SCALE } from "../support/scale.ts";
import { bundles, lostAnswers, type Planned, singleCalls } from "./plan.ts";

const IS_FULL = SCALE === "full";
const TIMEOUT = IS_FULL ? 3_600_000 : 180_000;

test("every run takes enough of the matrix, and six in a row take all of it", () => {
  const nameOf = ({ store, one }: Planned) => `${store} ${one.kind} ${one.crashAt}`;
  const runs = Array.from({ length: 6 }, (_, at) => singleCalls(SEED + at, false).map(nameOf));
  for (const run of runs) expect(new Set(run).size).toBeGreaterThanOrEqual(24);
  expect(new Set(runs.flat())).toEqual(new Set(singleCalls(SEED, true).map(nameOf)));
});

for (const store of STORES) {
  test(`G6 T8 I5 I6 I7 I9 I14 one call killed at each crash point: ${store}`, {
    timeout: TIMEOUT,
  }, async () => {
    const planned = singleCalls(SEED, IS_FULL).filter((one) => one.store === store);
    const ran = await crashAll(
      store,
      planned.map(({ one }) => one),
    );
    tell(`single calls, ${store}`, ran);
    expect(ran.violations).toEqual([]);
    expect(ran.crashes, "void: too few crashes").toBe(planned.length);
    expect(ran.crashes).toBeGreaterThanOrEqual(IS_FULL ? 600 : 10);
    expect(ran.recoveryCrashes, "void: no recovery was cut off").toBeGreaterThan(0);
    expect(ran.counts.takenOver, "void: nothing was recovered").toBeGreaterThan(0);
  });

  test(`G6 T9 I28 a bundle killed in its steps and in its compensation: ${store}`, {
    timeout: TIMEOUT,
  }, async () => {
    const planned = bundles(SEED, IS_FULL).filter((one) => one.store === store);
    const ran = await crashAll(
      store,
      planned.map(({ one }) => one),
    );
    tell(`bundles, ${store}`, ran);
    expect(ran.violations).toEqual([]);
    expect(ran.crashes, "void: too few crashes").toBe(planned.length);
    expect(ran.crashes).toBeGreaterThanOrEqual(IS_FULL ? 120 : 5);
    expect(ran.counts.takenOver, "void: nothing was recovered").toBeGreaterThan(0);
  });
}

test("T8 an answer that production never gives is found out or told as unknown", {
  timeout: TIMEOUT,
}, async () => {
  const planned = lostAnswers();
  let deaths = 0;
  for (const store of STORES) {
    const ours = planned.filter((one) => one.store === store).map(({ one }) => one);
    const ran = await crashAll(store, ours, { atOnce: 1 });
    expect(ran.violations).toEqual([]);
    deaths += ran.worldDeaths;
  }
  expect(deaths, "void: production did not die").toBe(3);
});

function tell(what: string, { counts, violations, ...happened }: CasesRun): void {
  const figures = { ...happened, ...counts, violations: violations.length };
  record({ goal: "G6", what: `kill -9 at named points: ${what}`, figures, seed: SEED });
}
