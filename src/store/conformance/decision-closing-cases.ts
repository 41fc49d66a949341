import assert from "node:assert/strict";
import { DECISION_STATES } from "../../model/decision.ts";
import { toIso } from "../../util/clock.ts";
import type { DecisionCase } from "./case.ts";
import { NOWHERE, refuses, START, stagedIn } from "./samples.ts";

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
  {
    name: "markExecuted: S0-60 approved becomes executed with the proof, and nothing else changes",
    async run(harness) {
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
    },
  },
  ...Object.entries(PROOFS).map(
    ([what, proof]): DecisionCase => ({
      name: `markExecuted: S0-61 a proof may be ${what} and is kept as given`,
      async run(harness) {
        const { id } = await stagedIn("approved", harness);
        const executed = await harness.decisions.markExecuted(id, proof);
        assert.equal(executed.state, "executed");
        assert.deepEqual(executed.executionProof, proof);
        assert.deepEqual((await harness.decisions.get(id)).executionProof, proof);
      },
    }),
  ),
  {
    name: "markExecuted: S0-62 S0-63 a repeat succeeds, keeps the first proof and refreshes nothing",
    async run(harness) {
      const { decisions, clock } = harness;
      const { id } = await stagedIn("approved", harness);
      const first = await decisions.markExecuted(id, "first");
      clock.advance(1_000);
      assert.deepEqual(await decisions.markExecuted(id, "second"), first);
      assert.deepEqual(await decisions.markExecuted(id, undefined), first);
      assert.deepEqual(await decisions.get(id), first);
      assert.equal(first.executionProof, "first");
      assert.equal(first.updatedAt, toIso(START));
    },
  },
  {
    name: "markFailed: S0-67 approved becomes failed with the reason, and nothing else changes",
    async run(harness) {
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
    },
  },
  {
    name: "markFailed: S0-68 S0-63 a repeat succeeds, keeps the first reason and refreshes nothing",
    async run(harness) {
      const { decisions, clock } = harness;
      const { id } = await stagedIn("approved", harness);
      const first = await decisions.markFailed(id, "first");
      clock.advance(1_000);
      assert.deepEqual(await decisions.markFailed(id, "second"), first);
      assert.deepEqual(await decisions.markFailed(id, ""), first);
      assert.deepEqual(await decisions.get(id), first);
      assert.equal(first.executionError, "first");
      assert.equal(first.updatedAt, toIso(START));
    },
  },
  {
    name: "mark: S0-64 S0-69 S0-100 the other outcome on a closed record is already_final, not illegal_transition",
    async run(harness) {
      const { decisions } = harness;
      const executed = await stagedIn("executed", harness);
      const failed = await stagedIn("failed", harness);
      harness.clock.advance(1);
      await refuses("already_final", () => decisions.markFailed(executed.id, "late"));
      await refuses("already_final", () => decisions.markExecuted(failed.id, "late"));
      assert.deepEqual(await decisions.get(executed.id), executed);
      assert.deepEqual(await decisions.get(failed.id), failed);
    },
  },
  ...(["pending_tech", "pending_ml", "rejected_tech", "rejected_ml"] as const).map(
    (state): DecisionCase => ({
      name: `mark: ${state.startsWith("pending") ? "S0-65" : "S0-66"} S0-70 S0-100 on ${state} both are an illegal transition and change nothing`,
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
  {
    name: "mark: S0-71 both are not_found for an unknown id",
    async run({ decisions }) {
      await refuses("not_found", () => decisions.markExecuted(NOWHERE, "proof"));
      await refuses("not_found", () => decisions.markFailed(NOWHERE, "reason"));
    },
  },
  {
    name: "mark: S0-72 S0-73 only a failed record has an error, only an executed one a proof",
    async run(harness) {
      for (const state of DECISION_STATES) {
        const { id } = await stagedIn(state, harness);
        const record = await harness.decisions.get(id);
        assert.equal(record.executionError !== "", state === "failed", state);
        assert.equal(record.executionProof !== undefined, state === "executed", state);
      }
    },
  },
];
