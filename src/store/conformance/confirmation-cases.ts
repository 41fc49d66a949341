import assert from "node:assert/strict";
import type { Verdict } from "../../model/decision.ts";
import { ONE_PERSON, type Preview, previewHash } from "../../model/interaction.ts";
import { toIso } from "../../util/clock.ts";
import { executedMove } from "../decisions.ts";
import type { Showing } from "../interactions.ts";
import { cases, type EngineHarness, TENANT } from "./case.ts";

import {
  BY,
  intent,
  LEASE,
  NO,
  refuses,
  START,
  sampleDraft,
  stagedIn,
  success,
  YES,
} from "./samples.ts";

function previewOf(decisionId: string, over: Partial<Preview> = {}): Preview {
  return {
    decisionId,
    tenant: TENANT,
    actionHash: "a".repeat(64),
    dryRun: { summary: "refund 1 cent" },
    stateVersion: "v1",
    safetyClass: "external",
    policyHash: "p".repeat(64),
    expiresAt: toIso(START + 60_000),
    nonce: "n-1",
    epoch: "",
    sessionId: "session-1",
    askers: ["agent:one"],
    requires: ONE_PERSON,
    ...over,
  };
}

/** The preview with the question about it. */
function showing(preview: Preview): Showing {
  const question = {
    sessionId: "session-1",
    callId: "call-1",
    displayText: "May it refund 1 cent?",
    chain: ["agent:one"],
  };
  return { preview, definitions: [], question, keys: [] };
}

const answered = (hash: string, verdict: Verdict) => ({ hash, by: verdict.validator, verdict });

/** A decision that was shown and approved as it was shown. */
async function approvedAsShown(harness: EngineHarness): Promise<{ id: string; hash: string }> {
  const { id } = await stagedIn("pending_ml", harness, sampleDraft());
  const { interactions } = harness.store.tenant(TENANT);
  const { hash } = await interactions.show(showing(previewOf(id)), BY);
  await interactions.approve(id, answered(hash, YES));
  return { id, hash };
}

/** What a confirmation shows and how long its approval holds, the epoch, and the kill switch. */
export const confirmationCases = cases<EngineHarness>((test) => {
  test("interactions: only the hash that was shown is approved, in time, once, and used up once [T3 T7]", async (harness) => {
    const { interactions, operations, decisions } = harness.store.tenant(TENANT);
    const { id } = await stagedIn("pending_ml", harness);
    const preview = previewOf(id);
    const { hash } = await interactions.show(showing(preview), BY);
    assert.deepEqual(await interactions.shown(id), { preview, hash, definitions: [] });
    assert.notEqual(previewHash({ ...preview, nonce: "n-2" }), hash);
    await refuses("illegal_transition", () => interactions.show(showing(preview), BY));
    const other = answered("0".repeat(64), YES);
    await refuses("approval_void", () => interactions.approve(id, other));
    assert.equal((await interactions.approve(id, answered(hash, YES))).outcome, "approved");
    assert.equal((await decisions.get(id)).state, "approved");
    await refuses("already_answered", () => interactions.reject(id, answered(hash, NO)));
    const wrong = await operations.start(intent({ approval: { decisionId: id, hash: "0" } }));
    assert.deepEqual(wrong, { started: false, reason: "expired_or_changed" });
    const right = intent({ approval: { decisionId: id, hash } });
    assert.ok((await operations.start(right)).started);
    const closes = executedMove(id, { receipt: 1 }, "executor");
    await operations.settle("op-1", { fence: 1, outcome: success(), closes, actor: "executor" });
    assert.equal((await decisions.get(id)).state, "executed");
    const replay = await operations.start(intent({ ...right, id: "op-2" }));
    assert.deepEqual(replay, { started: false, reason: "not_approved" });
  });
  test("interactions: after its deadline a confirmation approves and starts nothing, whatever the clock does [T34 I13]", async (harness) => {
    const { interactions, operations } = harness.store.tenant(TENANT);
    const late = await stagedIn("pending_ml", harness);
    const { hash: lateHash } = await interactions.show(showing(previewOf(late.id)), BY);
    const lateYes = () => interactions.approve(late.id, answered(lateHash, YES));
    const { id, hash } = await approvedAsShown(harness);
    harness.clock.advance(60_001);
    await refuses("approval_void", lateYes);
    const start = () => operations.start(intent({ approval: { decisionId: id, hash } }));
    assert.deepEqual(await start(), { started: false, reason: "expired_or_changed" });
    // A clock that steps back revives nothing once the trail has seen the later time.
    await stagedIn("pending_tech", harness);
    harness.clock.set(START + 30_000);
    assert.deepEqual(await start(), { started: false, reason: "expired_or_changed" });
    await refuses("approval_void", lateYes);
    harness.clock.set(START);
    await refuses("clock_wrong", start);
    await refuses("clock_wrong", lateYes);
  });
  test("epoch: nothing starts that was approved in an earlier life of the store, in no process [I27 T37]", async (harness) => {
    const { operations, epoch, audit } = harness.store.tenant(TENANT);
    const { id, hash } = await approvedAsShown(harness);
    assert.equal(await epoch.current(), "");
    const start = (life: string, op: string) =>
      operations.start(
        intent({ id: op, approval: { decisionId: id, hash }, holds: [epoch.holdOf(life)] }),
      );
    const refused = { started: false, reason: "restored" };
    assert.deepEqual(await start("another", "op-1"), refused);
    await epoch.begin("life-2", "restored", BY);
    assert.equal(await epoch.current(), "life-2");
    assert.deepEqual(await start("", "op-1"), refused);
    await epoch.begin("life-3", "restored again", BY);
    assert.deepEqual(await start("life-2", "op-1"), refused);
    assert.ok((await start("life-3", "op-1")).started);
    assert.equal(await harness.store.tenant("globex").epoch.current(), "");
    const told = (await audit.read({ after: 0, limit: 100 })).filter(
      ({ type }) => type === "store.restored",
    );
    assert.deepEqual(
      told.map(({ data }) => JSON.parse(data ?? "{}").before),
      ["", "life-2"],
    );
  });
  test("switch: once it is thrown nothing starts; reading and resuming still work [I30 T38]", async (harness) => {
    const { store, clock } = harness;
    const { operations, killSwitch } = store.tenant(TENANT);
    assert.equal(await killSwitch.isStopped(), false);
    assert.ok((await operations.start(intent())).started);
    await killSwitch.stop("something is wrong", BY);
    assert.equal(await killSwitch.isStopped(), true);
    const answer = await operations.start(intent({ id: "op-2" }));
    assert.deepEqual(answer, { started: false, reason: "stopped" });
    clock.advance(LEASE);
    assert.equal(await operations.takeOver("op-1", LEASE, "x"), undefined, "nor goes on");
    const running = { fence: 1, outcome: success(), actor: "x" };
    assert.ok((await operations.settle("op-1", running)).settled, "what runs may still report");
    assert.ok((await store.tenant("globex").operations.start(intent())).started);
    await killSwitch.resume("it was nothing", BY);
    assert.ok((await operations.start(intent({ id: "op-2" }))).started);
  });
});
