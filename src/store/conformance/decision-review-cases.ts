import assert from "node:assert/strict";
import {
  DECISION_STATES,
  type Decision,
  NO_VERDICT,
  TIERS,
  type Tier,
  type Verdict,
} from "../../model/decision.ts";
import { toIso } from "../../util/clock.ts";
import type { DecisionStore } from "../decisions.ts";
import { cases, type DecisionCase, type DecisionHarness } from "./case.ts";
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
  ...cases<DecisionHarness>((test) => {
    test("review: a warning of the first tier stays readable on an approved record [S0-44]", async (harness) => {
      const { decisions } = harness;
      const { id } = await decisions.stage(sampleDraft());
      const warning = sampleVerdict({ severity: "warn", reason: "unusually large", score: 0.3 });
      await decisions.updateTechVerdict(id, warning);
      const approved = await decisions.updateBizVerdict(id, YES);
      assert.equal(approved.state, "approved");
      assert.deepEqual(approved.techVerdict, warning);
      assert.deepEqual((await decisions.markExecuted(id, 1)).techVerdict, warning);
      assert.deepEqual((await decisions.get(id)).techVerdict, warning);
    });
    test("review: the reason of a block stays readable on a rejected record [S0-44]", async (harness) => {
      const first = await stagedIn("rejected_tech", harness);
      const second = await stagedIn("rejected_ml", harness);
      assert.equal((await harness.decisions.get(first.id)).techVerdict.reason, NO.reason);
      assert.equal((await harness.decisions.get(second.id)).bizVerdict.reason, NO.reason);
      assert.deepEqual((await harness.decisions.get(second.id)).techVerdict, YES);
    });
    test("review: every move refreshes the update time and none the creation time [S0-20 S0-22]", async (harness) => {
      const { decisions, clock } = harness;
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
    });
    test("review: several records of one session live independently [S0-09]", async (harness) => {
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
    });
  }),
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
        name: `review: the ${tier} verdict and the move to ${to} are one write [${row} S0-29]`,
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
      name: `review: a ${tier} verdict from any other state is an illegal transition and changes nothing [${row} S0-80]`,
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
      name: `review: a ${tier} verdict on an unknown id is not_found [S0-30]`,
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

const PROOFS: Readonly<Record<string, unknown>> = {
  text: "receipt 4711",
  "empty text": "",
  number: 0,
  null: null,
  undefined: undefined,
  false: false,
  object: { id: 1, nested: [{ ok: true }], $v8: "mine" },
  list: [1, "two", null],
  date: new Date(START),
  bytes: new Uint8Array([0, 255]),
  map: new Map([["k", { v: 1n }]]),
  "text with NUL": "a\u0000b",
};

/** Closing the loop: markExecuted and markFailed. */
export const decisionClosingCases: readonly DecisionCase[] = [
  ...cases<DecisionHarness>((test) => {
    test("markExecuted: approved becomes executed with the proof, and nothing else changes [S0-60]", async (harness) => {
      const before = await stagedIn("approved", harness);
      harness.clock.advance(70);
      const executed = await harness.decisions.markExecuted(before.id, { receipt: 4711 });
      assert.deepEqual(executed, {
        ...before,
        state: "executed",
        executionProof: { receipt: 4711 },
        updatedAt: toIso(START + 70),
      });
      assert.deepEqual(await harness.decisions.get(before.id), executed);
    });
  }),
  ...Object.entries(PROOFS).map(
    ([what, proof]): DecisionCase => ({
      name: `markExecuted: a proof may be ${what} and is kept as given [S0-61]`,
      async run(harness) {
        const { id } = await stagedIn("approved", harness);
        const executed = await harness.decisions.markExecuted(id, proof);
        assert.equal(executed.state, "executed");
        assert.deepEqual(executed.executionProof, proof);
        assert.deepEqual((await harness.decisions.get(id)).executionProof, proof);
      },
    }),
  ),
  ...cases<DecisionHarness>((test) => {
    test("markExecuted: a repeat succeeds, keeps the first proof and refreshes nothing [S0-62 S0-63]", async (harness) => {
      const { decisions, clock } = harness;
      const { id } = await stagedIn("approved", harness);
      const first = await decisions.markExecuted(id, "first");
      clock.advance(1_000);
      assert.deepEqual(await decisions.markExecuted(id, "second"), first);
      assert.deepEqual(await decisions.markExecuted(id, undefined), first);
      assert.deepEqual(await decisions.get(id), first);
      assert.equal(first.executionProof, "first");
      assert.equal(first.updatedAt, toIso(START));
    });
    test("markFailed: approved becomes failed with the reason, and nothing else changes [S0-67]", async (harness) => {
      const before = await stagedIn("approved", harness);
      harness.clock.advance(70);
      const reason = "the bank said no: \u0000 ü 👩‍👩‍👧";
      const failed = await harness.decisions.markFailed(before.id, reason);
      assert.deepEqual(failed, {
        ...before,
        state: "failed",
        executionError: reason,
        updatedAt: toIso(START + 70),
      });
      assert.deepEqual(await harness.decisions.get(before.id), failed);
    });
    test("markFailed: a repeat succeeds, keeps the first reason and refreshes nothing [S0-68 S0-63]", async (harness) => {
      const { decisions, clock } = harness;
      const { id } = await stagedIn("approved", harness);
      const first = await decisions.markFailed(id, "first");
      clock.advance(1_000);
      assert.deepEqual(await decisions.markFailed(id, "second"), first);
      assert.deepEqual(await decisions.markFailed(id, ""), first);
      assert.deepEqual(await decisions.get(id), first);
      assert.equal(first.executionError, "first");
      assert.equal(first.updatedAt, toIso(START));
    });
    test("mark: the other outcome on a closed record is already_final, not illegal_transition [S0-64 S0-69 S0-100]", async (harness) => {
      const { decisions } = harness;
      const executed = await stagedIn("executed", harness);
      const failed = await stagedIn("failed", harness);
      harness.clock.advance(1);
      await refuses("already_final", () => decisions.markFailed(executed.id, "late"));
      await refuses("already_final", () => decisions.markExecuted(failed.id, "late"));
      assert.deepEqual(await decisions.get(executed.id), executed);
      assert.deepEqual(await decisions.get(failed.id), failed);
    });
  }),
  ...(["pending_tech", "pending_ml", "rejected_tech", "rejected_ml"] as const).map(
    (state): DecisionCase => ({
      name: `mark: on ${state} both are an illegal transition and change nothing [${state.startsWith("pending") ? "S0-65" : "S0-66"} S0-70 S0-100]`,
      async run(harness) {
        const { decisions } = harness;
        const before = await stagedIn(state, harness);
        harness.clock.advance(1);
        await refuses("illegal_transition", () => decisions.markExecuted(before.id, "proof"));
        await refuses("illegal_transition", () => decisions.markFailed(before.id, "reason"));
        assert.deepEqual(await decisions.get(before.id), before);
      },
    }),
  ),
  ...cases<DecisionHarness>((test) => {
    test("mark: both are not_found for an unknown id [S0-71]", async ({ decisions }) => {
      await refuses("not_found", () => decisions.markExecuted(NOWHERE, "proof"));
      await refuses("not_found", () => decisions.markFailed(NOWHERE, "reason"));
    });
    test("mark: only a failed record has an error, only an executed one a proof [S0-72 S0-73]", async (harness) => {
      for (const state of DECISION_STATES) {
        const { id } = await stagedIn(state, harness);
        const record = await harness.decisions.get(id);
        assert.equal(record.executionError !== "", state === "failed", state);
        assert.equal(record.executionProof !== undefined, state === "executed", state);
      }
    });
  }),
];
