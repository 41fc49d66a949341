import assert from "node:assert/strict";
import { type Decision, isFinal, isLegal } from "../../model/decision.ts";
import { isSallyportError, SallyportError } from "../../model/errors.ts";
import { cases, type DecisionHarness } from "./case.ts";
import { NO, sampleDraft, sampleVerdict, stagedIn, together, YES } from "./samples.ts";

/** Records that everybody works on, each with eight kinds of calls, three times. */
const SHARED = 8;

/** Many at once. */
export const decisionRaceCases = cases<DecisionHarness>((test) => {
  test("races: of many verdicts on one record exactly one is stored, the others are told so [S0-57 S0-103]", async (harness) => {
    const { decisions } = harness;
    const { id } = await decisions.stage(sampleDraft());
    const outcomes = await together(40, (index) =>
      outcomeOf(
        decisions.updateTechVerdict(
          id,
          sampleVerdict({ approved: index % 2 === 0, validator: `v${index}` }),
        ),
      ),
    );
    const won = outcomes.filter((one) => typeof one !== "string");
    assert.equal(won.length, 1);
    assert.deepEqual(
      new Set(outcomes.filter((one) => typeof one === "string")),
      new Set(["illegal_transition"]),
    );
    assert.deepEqual(await decisions.get(id), won[0]);
  });
  test("races: of many parallel proofs one is kept, and every call succeeds and reports it [S0-76]", async (harness) => {
    const { id } = await stagedIn("approved", harness);
    const results = await together(40, (index) => harness.decisions.markExecuted(id, { index }));
    const stored = await harness.decisions.get(id);
    for (const result of results) assert.deepEqual(result, stored);
    assert.equal(stored.state, "executed");
    assert.equal(typeof (stored.executionProof as { index: number }).index, "number");
  });
  test("races: the same for many parallel reasons of failure [S0-76]", async (harness) => {
    const { id } = await stagedIn("approved", harness);
    const results = await together(40, (index) => harness.decisions.markFailed(id, `no ${index}`));
    const stored = await harness.decisions.get(id);
    for (const result of results) assert.deepEqual(result, stored);
    assert.match(stored.executionError, /^no \d+$/);
  });
  test("races: of executed and failed on one record one wins, the other gets already_final [S0-77]", async (harness) => {
    for (let round = 0; round < 10; round += 1) {
      const { id } = await stagedIn("approved", harness);
      const calls = [
        () => harness.decisions.markExecuted(id, "proof"),
        () => harness.decisions.markFailed(id, "reason"),
      ];
      // In both orders: the first call to reach the store wins.
      if (round % 2 === 1) calls.reverse();
      const outcomes = await Promise.all(calls.map((call) => outcomeOf(call())));
      assert.equal(outcomes.filter((one) => one === "already_final").length, 1);
      const won = outcomes.find((one) => typeof one !== "string");
      const stored = await harness.decisions.get(id);
      assert.deepEqual(stored, won);
      assert.equal(stored.executionError === "", stored.state === "executed", "S0-72");
    }
  });
  test("races: every method at once on shared records: each answer is lawful and none is lost [S0-103]", async (harness) => {
    const { decisions } = harness;
    const shared = await together(SHARED, () => decisions.stage(sampleDraft()));
    const seen = await together(SHARED * 8 * 3, (index) => anything(harness, shared, index));
    const allowed = new Set(["illegal_transition", "already_final"]);
    for (const one of seen) if (typeof one === "string") assert.ok(allowed.has(one), one);
    for (const { id } of shared) {
      const stored = await decisions.get(id);
      const path = seen.filter((one) => typeof one !== "string" && one.id === id) as Decision[];
      const states = new Set(path.map(({ state }) => state));
      assert.ok(states.size === 0 || states.has(stored.state) || !isFinal(stored.state));
      for (const one of path) {
        assert.ok(one.state === stored.state || reachable(one.state, stored.state));
      }
    }
    assert.equal((await decisions.list()).length, SHARED * 4);
  });
  test("races: fifty records go their whole way at the same time [S0-56 S0-103]", async (harness) => {
    const closed = await together(50, (index) =>
      stagedIn(index % 2 === 0 ? "executed" : "failed", harness),
    );
    assert.equal(new Set(closed.map(({ id }) => id)).size, 50);
    const states = (await harness.decisions.list()).map(({ state }) => state);
    assert.equal(states.filter((state) => state === "executed").length, 25);
    assert.equal(states.filter((state) => state === "failed").length, 25);
  });
});

/** The record, or the code of the refusal. */
async function outcomeOf(call: Promise<Decision>): Promise<Decision | string> {
  try {
    return await call;
  } catch (error) {
    assert.ok(isSallyportError(error) && error instanceof SallyportError, String(error));
    return error.code;
  }
}

async function anything(
  { decisions }: DecisionHarness,
  shared: readonly Decision[],
  index: number,
): Promise<Decision | string> {
  const { id } = shared[index % shared.length] ?? { id: "" };
  const turn = Math.floor(index / shared.length) % 8;
  if (turn === 0) return outcomeOf(decisions.updateTechVerdict(id, YES));
  if (turn === 1) return outcomeOf(decisions.updateBizVerdict(id, index % 3 === 0 ? NO : YES));
  if (turn === 2) return outcomeOf(decisions.markExecuted(id, index));
  if (turn === 3) return outcomeOf(decisions.markFailed(id, `no ${index}`));
  if (turn === 4) return outcomeOf(decisions.get(id));
  if (turn === 5) return outcomeOf(decisions.stage(sampleDraft({ sessionId: "session-2" })));
  const listed = await (turn === 6 ? decisions.list() : decisions.listStuck("approved", 0));
  assert.ok(listed.length <= SHARED * 4);
  return outcomeOf(decisions.get(id));
}

function reachable(from: string, to: string): boolean {
  const steps = ["pending_ml", "rejected_tech", "rejected_ml", "approved", "executed", "failed"];
  return isLegal(from, to) || steps.some((step) => isLegal(from, step) && reachable(step, to));
}
