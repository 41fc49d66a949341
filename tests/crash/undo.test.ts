// Kills during an undo: the rollback of a finished session, and each step and compensation of a long saga.

import { expect, test } from "vitest";
import type { CasesRun } from "../../src/crashkit/cases/run-cases.ts";
import { crashAll, SEED, STORES, type StoreKind } from "../support/crash-run.ts";
import { record } from "../support/record.ts";
import { SCALE, scaled } from "../support/scale.ts";
import { type Planned, rollbacks, sagas } from "./plan.ts";

const ALL = Number.POSITIVE_INFINITY;
const UNDO_CASES = scaled({ test: 4, proof: 16, full: ALL });
const SAGA_CASES = scaled({ test: 3, proof: 12, full: ALL });
/** A small run takes one store for each, and the next seed the other. */
const [ONE, OTHER] = SCALE === "test" ? [[storeAt(SEED)], [storeAt(SEED + 1)]] : [STORES, STORES];
const TIMEOUT = SCALE === "full" ? 3_600_000 : 120_000;

test("the matrices are complete, and small parts of them add up to all", () => {
  const nameOf = ({ store, one }: Planned) => `${store} ${one.kind} ${one.crashAt}`;
  for (const plan of [rollbacks, sagas]) {
    const all = new Set(plan(0, ALL).map(nameOf));
    const parts = Array.from({ length: Math.ceil(all.size / 8) }, (_, seed) =>
      plan(seed, 8).map(nameOf),
    );
    expect(new Set(parts.flat())).toEqual(all);
    for (const part of parts) expect(new Set(part).size).toBe(8);
  }
  // Eight points of each of two calls, and two around the report; three kinds, two stores.
  expect(rollbacks(0, ALL)).toHaveLength((8 * 2 + 2) * 6);
  expect(sagas(0, ALL)).toHaveLength(8 * (10 + 9 + 10) * 6);
});

test(
  "the rollback of a finished session, killed at each of its points [G6 T9 I28]",
  {
    timeout: TIMEOUT,
  },
  () => crashBoth("rollback of a finished session", rollbacks(SEED, UNDO_CASES, ONE)),
);

test(
  "a saga of ten steps, killed in each step, compensation and rollback [G6 T9 I28]",
  {
    timeout: TIMEOUT,
  },
  () => crashBoth("each step of a 10-step saga", sagas(SEED, SAGA_CASES, OTHER)),
);

function storeAt(place: number): StoreKind {
  return STORES[place % STORES.length] ?? "sqlite";
}

async function crashBoth(what: string, planned: readonly Planned[]): Promise<void> {
  for (const store of STORES) {
    const cases = planned.filter((one) => one.store === store).map(({ one }) => one);
    if (cases.length === 0) continue;
    const ran = await crashAll(store, cases, { cutOff: SCALE !== "test" });
    tell(`${what}, ${store}`, ran);
    expect(ran.violations).toEqual([]);
    expect(ran.crashes, "void: too few crashes").toBe(cases.length);
    expect(
      ran.counts.undone + ran.counts.executed,
      "void: nothing came to its end",
    ).toBeGreaterThan(0);
  }
}

function tell(what: string, { counts, violations, ...happened }: CasesRun): void {
  const figures = { ...happened, ...counts, violations: violations.length };
  record({ goal: "G6", what: `kill -9 at named points: ${what}`, figures, seed: SEED });
}
