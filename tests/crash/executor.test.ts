// Real processes are killed with SIGKILL at the points of docs/spec/reliability.md; then others recover. What production has
// seen (a process of its own, with a ledger of its own), what the store says and what the trail tells must agree.

import { expect, test } from "vitest";
import { type CasesRun, named, permitCases } from "../../src/crashkit/cases/run-cases.ts";
import { crashAll, SEED, STORES } from "../support/crash-run.ts";
import { record } from "../support/record.ts";
import { SCALE } from "../support/scale.ts";
import { bundles, lostAnswers, type Planned, singleCalls } from "./plan.ts";

const IS_FULL = SCALE === "full";
const TIMEOUT = IS_FULL ? 3_600_000 : 180_000;

test("every run covers enough of the matrix, and six in a row cover all of it", () => {
  const nameOf = ({ store, one }: Planned) => `${store} ${one.kind} ${one.crashAt}`;
  const runs = Array.from({ length: 6 }, (_, at) => singleCalls(SEED + at, false).map(nameOf));
  for (const run of runs) expect(new Set(run).size).toBeGreaterThanOrEqual(24);
  expect(new Set(runs.flat())).toEqual(new Set(singleCalls(SEED, true).map(nameOf)));
});

for (const store of STORES) {
  test(`one call killed at each crash point: ${store} [G6 T8 I5 I6 I7 I9 I14]`, {
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
    // A machine that is too busy to do most of them has shown nothing.
    expect(ran.counts.executed, "void: too few calls came to an end").toBeGreaterThan(
      planned.length / 3,
    );
    expect(ran.counts.takenOver, "void: nothing was recovered").toBeGreaterThan(0);
  });

  test(`a bundle killed in its steps and in its compensation: ${store} [G6 T9 I28]`, {
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

test.each(STORES)(
  "an external executor killed around its permit, its effect and its report: %s [G6 T8 I5 I6 I7 I9]",
  { timeout: TIMEOUT },
  async (store) => {
    const cases = named(permitCases(), "permit");
    const ran = await crashAll(store, cases, { cutOff: false });
    tell(`permits, ${store}`, ran);
    expect(ran.violations).toEqual([]);
    expect(ran.crashes, "void: too few crashes").toBe(cases.length);
    expect(ran.counts.executed, "void: no report arrived").toBeGreaterThan(0);
    // Killed after taking the permit and before the report: only a person can find out.
    expect(ran.counts.unknown, "void: no outcome was lost").toBeGreaterThanOrEqual(5);
  },
);

test("a missing answer of production is probed or reported as unknown [T8]", {
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
