import assert from "node:assert/strict";
import { OPERATIONS } from "../../model/operation.ts";
import { toIso } from "../../util/clock.ts";
import type { Settlement } from "../operations.ts";
import { cases, type EngineHarness, TENANT } from "./case.ts";
import { BY, intent, LEASE, refuses, START, soundTrail, success, together } from "./samples.ts";

/** What is done, by whom, and what becomes of it. */
export const operationCases = cases<EngineHarness>((test) => {
  test("operations: the intent is there before the outcome, and both come back as given", async (harness) => {
    const { store, engine } = harness;
    const { operations } = store.tenant(TENANT);
    const begun = await operations.start(intent());
    assert.ok(begun.started);
    const { operation } = begun;
    assert.deepEqual([operation.status, operation.fence, operation.attempt], ["started", 1, 1]);
    assert.equal(operation.leaseUntil, toIso(START + LEASE));
    const undo = {
      tool: "billing.cancel",
      input: { id: "R-1" },
      description: "cancel it",
      irreversible: false,
      manualGuide: "",
    };
    const settlement = { fence: 1, outcome: success({ undo }), actor: "executor" };
    const { settled, operation: after } = await operations.settle("op-1", settlement);
    assert.deepEqual(
      [settled, after.status, after.output],
      [true, "success", "done \u0000 \ud800"],
    );
    assert.deepEqual(after.undo, undo);
    assert.deepEqual(await operations.get("op-1"), after);
    const types = (await soundTrail(engine)).map(({ type }) => type);
    assert.deepEqual(types, ["operation.started", "operation.succeeded"]);
  });
  test("operations: of many who start the same step one does, the others get the one that did [I7 T8]", async (harness) => {
    const { store } = harness;
    const { operations } = store.tenant(TENANT);
    const answers = await together(16, () => operations.start(intent()));
    assert.equal(answers.filter(({ started }) => started).length, 1);
    for (const answer of answers) {
      if (!answer.started) assert.equal(answer.reason, "used_up");
      assert.equal(answer.operation?.id, "op-1");
    }
  });
  test("operations: an old fence settles nothing, a lease is taken over only after its time [I12 T34]", async (harness) => {
    const { store, clock } = harness;
    const { operations } = store.tenant(TENANT);
    await operations.start(intent());
    assert.equal(await operations.takeOver("op-1", LEASE, "worker-2"), undefined);
    assert.deepEqual(await operations.listAbandoned(10), []);
    clock.advance(LEASE);
    assert.equal((await operations.listAbandoned(10)).length, 1);
    const taken = await together(4, (n) => operations.takeOver("op-1", LEASE, `worker-${n}`));
    assert.equal(taken.filter((one) => one !== undefined).length, 1);
    const late = { fence: 1, outcome: success({ output: "late" }), actor: "worker-1" };
    const refused = await operations.settle("op-1", late);
    assert.deepEqual([refused.settled, refused.operation.status], [false, "started"]);
    assert.equal(await operations.renew("op-1", 1, LEASE), false);
    assert.equal(await operations.renew("op-1", 2, LEASE), true);
    const right = { fence: 2, outcome: success({ output: "right" }), actor: "worker-2" };
    assert.equal((await operations.settle("op-1", right)).operation.output, "right");
    assert.equal((await operations.settle("op-1", right)).settled, false);
  });
  test("operations: who has one begins another attempt under a new fence, and nobody else, and nobody after a stop [I12 T34 T38]", async (harness) => {
    const { store } = harness;
    const { operations, killSwitch } = store.tenant(TENANT);
    const again = { leaseMs: LEASE, actor: "worker-1", along: [] };
    await operations.start(intent());
    const begun = await together(4, () => operations.tryAgain("op-1", 1, again));
    const [second, ...others] = begun.filter((one) => one !== undefined);
    assert.deepEqual([second?.fence, second?.attempt, others], [2, 2, []]);
    const late = { fence: 1, outcome: success(), actor: "worker-1" };
    assert.equal((await operations.settle("op-1", late)).settled, false);
    await killSwitch.stop("something is wrong", BY);
    assert.equal(await operations.tryAgain("op-1", 2, again), undefined);
    await killSwitch.resume("it was nothing", BY);
    assert.equal((await operations.tryAgain("op-1", 2, again))?.fence, 3);
    await operations.settle("op-1", { ...late, fence: 3 });
    assert.equal(await operations.tryAgain("op-1", 3, again), undefined, "it is over");
  });
  test("operations: a lost outcome is unknown until somebody finds out, and then it stays", async (harness) => {
    const { store } = harness;
    const { operations } = store.tenant(TENANT);
    await operations.start(intent());
    const lost = { status: "unknown", error: "no answer" } as const;
    const { operation } = await operations.settle("op-1", {
      fence: 1,
      outcome: lost,
      actor: "x",
    });
    assert.deepEqual([operation.status, operation.error], ["unknown", "no answer"]);
    const found = { status: "failed", error: "it never arrived", output: "" } as const;
    const told = await operations.settle("op-1", {
      fence: 1,
      outcome: found,
      actor: "person:ada",
    });
    assert.deepEqual([told.settled, told.operation.status], [true, "failed"]);
    const again = { fence: 1, outcome: success(), actor: "x" };
    assert.equal((await operations.settle("op-1", again)).settled, false);
  });
  test("operations: of eight executors one takes a permit; given back, it is taken again under a new fence", async (harness) => {
    const { store } = harness;
    const { operations } = store.tenant(TENANT);
    const taken = await together(8, (n) => operations.start(intent({ executor: `exec:${n}` })));
    assert.equal(taken.filter(({ started }) => started).length, 1);
    const back = { fence: 1, from: "started", actor: "exec:1" } as const;
    const given = await operations.giveBack("op-1", back);
    assert.deepEqual([given.settled, given.operation.status], [true, "returned"]);
    assert.equal((await operations.giveBack("op-1", back)).settled, false);
    const late = { fence: 1, outcome: success(), actor: "exec:1" };
    assert.equal(
      (await operations.settle("op-1", late)).settled,
      false,
      "given back is given back",
    );
    const again = await together(8, (n) => operations.start(intent({ executor: `exec:${n}` })));
    const [second, ...others] = again.filter(({ started }) => started);
    const { fence, attempt, status } = second?.operation ?? {};
    assert.deepEqual([others, fence, attempt, status], [[], 2, 2, "started"]);
    assert.equal((await operations.settle("op-1", late)).settled, false, "an old fence");
  });
  test("operations: a permit that nobody renews becomes unknown under its own fence, and only then", async (harness) => {
    const { store, clock } = harness;
    const { operations } = store.tenant(TENANT);
    await operations.start(intent({ executor: "exec:1" }));
    const lost = { status: "unknown", error: "no report" } as const;
    const asked = { fence: 1, from: "abandoned", outcome: lost, actor: "recovery" } as const;
    assert.equal((await operations.settle("op-1", asked)).settled, false, "its lease runs");
    clock.advance(LEASE + 1);
    assert.equal((await operations.settle("op-1", asked)).settled, true);
    const report = { fence: 1, outcome: success(), actor: "exec:1" } as const;
    assert.equal((await operations.settle("op-1", { ...report, from: "started" })).settled, false);
    assert.equal((await operations.settle("op-1", { ...report, from: "unknown" })).settled, true);
  });
  test("operations: an operation is taken back once, together with the one that takes it back [I28 T9]", async (harness) => {
    const { store } = harness;
    const { operations } = store.tenant(TENANT);
    await operations.start(intent());
    await operations.settle("op-1", { fence: 1, outcome: success(), actor: "x" });
    for (const id of ["undo-1", "undo-2"]) await operations.start(intent({ id, undoOf: "op-1" }));
    const answers = await Promise.all(
      ["undo-1", "undo-2"].map((id) =>
        operations.settle(id, { fence: 1, outcome: success(), tookBack: "op-1", actor: "x" }),
      ),
    );
    assert.equal(answers.filter(({ settled }) => settled).length, 1);
    assert.equal((await operations.get("op-1")).status, "rolled_back");
  });
  test("operations: the intent to undo a call needs that call finished and not undone, in the same transaction [T9]", async (harness) => {
    const { store, engine } = harness;
    const { operations } = store.tenant(TENANT);
    const undo = intent({ id: "undo-1", undoOf: "op-1" });
    const refusal = { started: false, reason: "nothing_to_undo" };
    const settled = (id: string, over: Partial<Settlement> = {}) =>
      operations.settle(id, { fence: 1, outcome: success(), actor: "x", ...over });
    assert.deepEqual(await operations.start(undo), refusal, "there is no such call");
    await operations.start(intent());
    assert.deepEqual(await operations.start(undo), refusal, "it is still running");
    await settled("op-1", { outcome: { status: "unknown", error: "no answer" } });
    assert.deepEqual(await operations.start(undo), refusal, "its outcome is unknown");
    assert.equal(await engine.get(TENANT, OPERATIONS, "undo-1"), undefined);
    await settled("op-1", { outcome: { status: "failed", error: "too late", output: "" } });
    assert.equal((await operations.start(undo)).started, true, "it failed after its effect");
    await settled("undo-1", { tookBack: "op-1" });
    const next = await operations.start({ ...undo, id: "undo-2" });
    assert.deepEqual(next, refusal, "it was undone before");
    const same = await operations.start(undo);
    assert.ok(!same.started && same.reason === "used_up" && same.operation?.id === "undo-1");
  });
  test("operations: what an undo has brought back has the version of now, unless somebody was faster [T9]", async (harness) => {
    const { store } = harness;
    const { operations, audit } = store.tenant(TENANT);
    for (const id of ["op-1", "op-2"]) {
      await operations.start(intent({ id }));
      await operations.settle(id, { fence: 1, outcome: success(), actor: "x" });
    }
    await operations.start(intent({ id: "undo-2", undoOf: "op-2" }));
    const { stateVersion: from } = await operations.get("op-1");
    const own = { fence: 1, outcome: success(), tookBack: "op-2", actor: "x" } as const;
    const stale = { ...own, broughtBack: [{ id: "op-1", from: "another", to: "v9" }] };
    assert.equal((await operations.settle("undo-2", stale)).settled, false);
    assert.equal((await operations.get("op-2")).status, "success");
    const right = { ...own, broughtBack: [{ id: "op-1", from, to: "v9" }] };
    assert.equal((await operations.settle("undo-2", right)).settled, true);
    assert.equal((await operations.get("op-1")).stateVersion, "v9");
    assert.equal((await operations.get("op-2")).status, "rolled_back");
    const trail = await audit.read({ after: 0, limit: 100 });
    const told = trail.filter(({ type }) => type === "operation.brought_back");
    assert.deepEqual(
      told.map(({ subject }) => subject),
      ["op-1"],
    );
  });
  test("operations: a session's are listed oldest first, also by message and decision", async (harness) => {
    const { store } = harness;
    const { operations } = store.tenant(TENANT);
    for (const [id, messageId] of [
      ["a", "m-1"],
      ["b", "m-2"],
      ["c", "m-1"],
    ] as const) {
      await operations.start(intent({ id, messageId }));
    }
    await operations.start(intent({ id: "d", sessionId: "session-2" }));
    const ids = async (narrow = {}) =>
      (await operations.listBySession("session-1", narrow)).map(({ id }) => id);
    assert.deepEqual(await ids(), ["a", "b", "c"]);
    assert.deepEqual(await ids({ messageId: "m-1" }), ["a", "c"]);
    assert.deepEqual(await ids({ decisionId: "none" }), []);
    await refuses("invalid_input", () => operations.listBySession(""));
    await refuses("not_found", () => operations.get("nowhere"));
    assert.deepEqual(await store.tenant("globex").operations.listBySession("session-1"), []);
  });
});
