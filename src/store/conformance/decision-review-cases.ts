import assert from "node:assert/strict";
import { DECISION_STATES, type Decision, TIERS, type Tier } from "../../model/decision.ts";
import { NO_VERDICT, type Verdict } from "../../model/verdict.ts";
import { toIso } from "../../util/clock.ts";
import type { DecisionStore } from "../decisions.ts";
import type { DecisionCase } from "./case.ts";
import {
  NO,
  NOWHERE,
  refuses,
  START,
  sampleDraft,
  sampleVerdict,
  stagedIn,
  YES,
} from "./samples.ts";

const ROW: Readonly<Record<Tier, string>> = { tech: "S0-78", business: "S0-79" };

/** The two verdict calls, which differ only in where they start and lead. */
export const decisionReviewCases: readonly DecisionCase[] = [
  ...(["tech", "business"] as const).flatMap(casesOf),
  {
    name: "review: S0-44 a warning of the first tier stays readable on an approved record",
    async run({ decisions }) {
      const { id } = await decisions.stage(sampleDraft());
      const warning = sampleVerdict({ severity: "warn", reason: "unusually large", score: 0.3 });
      await decisions.updateTechVerdict(id, warning);
      const approved = await decisions.updateBizVerdict(id, YES);
      assert.equal(approved.state, "approved");
      assert.deepEqual(approved.techVerdict, warning);
      assert.deepEqual((await decisions.markExecuted(id, 1)).techVerdict, warning);
      assert.deepEqual((await decisions.get(id)).techVerdict, warning);
    },
  },
  {
    name: "review: S0-44 the reason of a block stays readable on a rejected record",
    async run(harness) {
      const first = await stagedIn("rejected_tech", harness);
      const second = await stagedIn("rejected_ml", harness);
      assert.equal((await harness.decisions.get(first.id)).techVerdict.reason, NO.reason);
      assert.equal((await harness.decisions.get(second.id)).bizVerdict.reason, NO.reason);
      assert.deepEqual((await harness.decisions.get(second.id)).techVerdict, YES);
    },
  },
  {
    name: "review: S0-20 S0-22 every move refreshes the update time and none the creation time",
    async run({ decisions, clock }) {
      const { id } = await decisions.stage(sampleDraft());
      const moves: readonly (() => Promise<Decision>)[] = [
        () => decisions.updateTechVerdict(id, YES),
        () => decisions.updateBizVerdict(id, YES),
        () => decisions.markFailed(id, "no"),
      ];
      for (const [index, move] of moves.entries()) {
        clock.advance(100);
        const moved = await move();
        assert.equal(moved.createdAt, toIso(START));
        assert.equal(moved.updatedAt, toIso(START + 100 * (index + 1)));
        assert.deepEqual(await decisions.get(id), moved);
      }
    },
  },
  {
    name: "review: S0-09 several records of one session live independently",
    async run(harness) {
      const { decisions } = harness;
      const [a, b, c] = await Promise.all([
        stagedIn("rejected_tech", harness),
        stagedIn("approved", harness),
        stagedIn("pending_tech", harness),
      ]);
      await decisions.markFailed(b.id, "broke");
      const states = (await decisions.listBySession("session-1")).map(({ id, state }) => [
        id,
        state,
      ]);
      assert.deepEqual(Object.fromEntries(states), {
        [a.id]: "rejected_tech",
        [b.id]: "failed",
        [c.id]: "pending_tech",
      });
    },
  },
];

function casesOf(tier: Tier): readonly DecisionCase[] {
  const { from, yes, no, field } = TIERS[tier];
  const other = tier === "tech" ? "bizVerdict" : "techVerdict";
  const row = ROW[tier];
  return [
    ...(
      [
        [yes, YES],
        [no, NO],
      ] as const
    ).map(
      ([to, verdict]): DecisionCase => ({
        name: `review: ${row} S0-29 the ${tier} verdict and the move to ${to} are one write`,
        async run(harness) {
          const { clock } = harness;
          const before = await stagedIn(from, harness);
          clock.advance(50);
          const moved = await reviewed(harness.decisions, tier, before.id, verdict);
          assert.deepEqual(moved, {
            ...before,
            state: to,
            [field]: verdict,
            updatedAt: toIso(START + 50),
          });
          assert.deepEqual(await harness.decisions.get(before.id), moved);
          if (tier === "tech") assert.deepEqual(moved[other], NO_VERDICT);
          else assert.deepEqual(moved[other], YES, "S0-50");
        },
      }),
    ),
    {
      name: `review: ${row} S0-80 a ${tier} verdict from any other state is an illegal transition and changes nothing`,
      async run(harness) {
        const { decisions } = harness;
        for (const state of DECISION_STATES.filter((one) => one !== from)) {
          const before = await stagedIn(state, harness);
          harness.clock.advance(1);
          for (const verdict of [YES, NO]) {
            const call = () => reviewed(decisions, tier, before.id, verdict);
            await refuses("illegal_transition", call, state);
          }
          assert.deepEqual(await decisions.get(before.id), before);
        }
      },
    },
    {
      name: `review: S0-30 a ${tier} verdict on an unknown id is not_found`,
      async run({ decisions }) {
        await refuses("not_found", () => reviewed(decisions, tier, NOWHERE, YES));
        await refuses("not_found", () => reviewed(decisions, tier, "", NO));
        assert.deepEqual(await decisions.list(), []);
      },
    },
  ];
}

function reviewed(
  decisions: DecisionStore,
  tier: Tier,
  id: string,
  verdict: Verdict,
): Promise<Decision> {
  return tier === "tech"
    ? decisions.updateTechVerdict(id, verdict)
    : decisions.updateBizVerdict(id, verdict);
}
