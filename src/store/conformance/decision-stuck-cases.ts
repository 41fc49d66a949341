import assert from "node:assert/strict";
import { DECISION_STATES, type DecisionState } from "../../model/decision.ts";
import { toIso } from "../../util/clock.ts";
import type { DecisionCase } from "./case.ts";
import { NOWHERE, refuses, START, stagedIn, YES } from "./samples.ts";

const HOUR = 3_600_000;

/** listStuck, and queries that make no sense. */
export const decisionStuckCases: readonly DecisionCase[] = [
  {
    name: "listStuck: S0-94 S0-95 the age counts from the update time, against the current clock, inclusive",
    async run(harness) {
      const { decisions, clock } = harness;
      const { id } = await stagedIn("pending_ml", harness);
      clock.advance(HOUR);
      await decisions.updateBizVerdict(id, YES);
      const isStuck = async (ms: number) =>
        (await decisions.listStuck("approved", ms)).length === 1;
      assert.equal(await isStuck(1), false, "created an hour ago, but approved just now");
      assert.equal(await isStuck(0), true);
      clock.advance(1_000);
      assert.equal(await isStuck(999), true);
      assert.equal(await isStuck(1_000), true, "the boundary itself");
      assert.equal(await isStuck(1_001), false);
      clock.advance(1);
      assert.equal(await isStuck(1_001), true);
    },
  },
  {
    name: "listStuck: S0-96 works for any state and gives that state alone, oldest first",
    async run(harness) {
      const { decisions, clock } = harness;
      const made: (readonly [DecisionState, string])[] = [];
      for (const state of [...DECISION_STATES, ...DECISION_STATES]) {
        made.push([state, (await stagedIn(state, harness)).id]);
      }
      clock.advance(HOUR);
      for (const state of DECISION_STATES) {
        const expected = made.filter(([one]) => one === state).map(([, id]) => id);
        const stuck = await decisions.listStuck(state, HOUR);
        assert.deepEqual(
          stuck.map(({ id }) => id),
          expected,
          state,
        );
        assert.deepEqual(await decisions.listStuck(state, HOUR + 1), []);
      }
    },
  },
  {
    name: "listStuck: comes in pages, each decision once, and refuses a place that is none",
    async run(harness) {
      const { decisions, clock } = harness;
      const made: string[] = [];
      for (let n = 0; n < 5; n += 1) made.push((await stagedIn("approved", harness)).id);
      clock.advance(HOUR);
      const found: string[] = [];
      for (let after = {}; ; ) {
        const page = await decisions.listStuck("approved", HOUR, { limit: 2, ...after });
        found.push(...page.map(({ id }) => id));
        if (page.length < 2) break;
        after = { after: page.at(-1)?.id };
      }
      assert.deepEqual(found, made);
      const nowhere = { after: NOWHERE };
      await refuses("invalid_input", () => decisions.listStuck("approved", HOUR, nowhere));
    },
  },
  {
    name: "listStuck: S0-97 a record can be backdated to test this without waiting; an unknown id does nothing",
    async run(harness) {
      const { decisions } = harness;
      const fresh = await stagedIn("approved", harness);
      const old = await stagedIn("approved", harness);
      await harness.backdate(old.id, toIso(START - HOUR));
      await harness.backdate(NOWHERE, toIso(0));
      const stuck = await decisions.listStuck("approved", HOUR);
      assert.deepEqual(stuck, [{ ...old, updatedAt: toIso(START - HOUR) }]);
      assert.deepEqual(await decisions.get(fresh.id), fresh);
      assert.equal((await decisions.list()).length, 2);
    },
  },
  {
    name: "listStuck: an age beyond all times finds nothing, a negative one is refused",
    async run(harness) {
      await stagedIn("approved", harness);
      for (const ms of [Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER, 1e300]) {
        assert.deepEqual(await harness.decisions.listStuck("approved", ms), [], String(ms));
      }
      for (const ms of [-1, Number.NaN]) {
        await refuses("invalid_input", () => harness.decisions.listStuck("approved", ms));
      }
    },
  },
  {
    name: "queries: unknown states and moments that are none are refused, not ignored",
    async run({ decisions }) {
      for (const name of ["", "Approved", "constructor"]) {
        const state = name as DecisionState;
        await refuses("invalid_input", () => decisions.list({ states: ["approved", state] }));
        await refuses("invalid_input", () => decisions.listStuck(state, 0));
      }
      for (const since of ["yesterday", "2026-02-30T00:00:00.000Z", "2026-11-15"]) {
        await refuses("invalid_input", () => decisions.list({ since }));
      }
    },
  },
  {
    name: "queries: a limit that is no whole number is refused or rounded down, on every store",
    async run(harness) {
      for (let count = 0; count < 4; count += 1) await stagedIn("pending_tech", harness);
      const answer = await harness.decisions.list({ limit: 2.5 }).catch((error: unknown) => error);
      if (Array.isArray(answer)) assert.equal(answer.length, 2);
      else await refuses("invalid_input", () => Promise.reject(answer));
    },
  },
];
