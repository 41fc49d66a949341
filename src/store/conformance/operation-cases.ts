import assert from "node:assert/strict";
import { type Preview, previewHash } from "../../model/approval.ts";
import { ONE_PERSON } from "../../model/requirement.ts";
import type { Verdict } from "../../model/verdict.ts";
import { toIso } from "../../util/clock.ts";
import type { Showing } from "../approvals.ts";
import { executedMove } from "../decision-moves.ts";
import type { Intent, Outcome } from "../operations.ts";
import type { EngineCase, EngineHarness } from "./case.ts";
import { TENANT } from "./harness.ts";
import { soundTrail } from "./rows.ts";
import { NO, refuses, START, sampleDraft, stagedIn, together, YES } from "./samples.ts";

const BY = { actor: "person:ada" };
const LEASE = 30_000;

function intent(over: Partial<Intent> = {}): Intent {
  return {
    id: "op-1",
    sessionId: "session-1",
    messageId: "m-1",
    callId: "c-1",
    turn: 1,
    tool: "billing.refund",
    effect: "external",
    definitionHash: "d".repeat(64),
    input: '{"cents":1}',
    workingDirectory: "/srv/site",
    step: 0,
    undoOf: "",
    approval: undefined,
    leaseMs: LEASE,
    actor: "executor",
    ...over,
  };
}

function success(over: Partial<Outcome & { status: "success" }> = {}): Outcome {
  return {
    status: "success",
    output: "done \u0000 \ud800",
    truncated: false,
    storedPath: "",
    undo: undefined,
    stateVersion: "v2",
    ...over,
  };
}

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
  const { approvals, interactions } = harness.store.tenant(TENANT);
  const { hash } = await approvals.show(showing(previewOf(id)), BY);
  await interactions.approve(id, answered(hash, YES));
  return { id, hash };
}

/** What is shown, what is approved, what is done, and the switch that stops it. */
export const operationCases: readonly EngineCase[] = [
  {
    name: "operations: the intent is there before the outcome, and both come back as given",
    async run({ store, engine }) {
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
    },
  },
  {
    name: "operations: T8 I7 of many who start the same step one does, the others get the one that did",
    async run({ store }) {
      const { operations } = store.tenant(TENANT);
      const answers = await together(16, () => operations.start(intent()));
      assert.equal(answers.filter(({ started }) => started).length, 1);
      for (const answer of answers) {
        if (!answer.started) assert.equal(answer.reason, "used_up");
        assert.equal(answer.operation?.id, "op-1");
      }
    },
  },
  {
    name: "operations: T34 I12 an old fence settles nothing, a lease is taken over only after its time",
    async run({ store, clock }) {
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
    },
  },
  {
    name: "operations: T34 T38 I12 who has one begins another attempt under a new fence, and nobody else, and nobody after a stop",
    async run({ store }) {
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
    },
  },
  {
    name: "operations: a lost outcome is unknown until somebody finds out, and then it stays",
    async run({ store }) {
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
    },
  },
  {
    name: "operations: T9 I28 an operation is taken back once, together with the one that takes it back",
    async run({ store }) {
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
    },
  },
  {
    name: "operations: T9 what an undo has brought back has the version of now, unless somebody was faster",
    async run({ store }) {
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
    },
  },
  {
    name: "operations: a session's are listed oldest first, also by message and decision",
    async run({ store }) {
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
    },
  },
  {
    name: "approvals: T3 T7 only the hash that was shown is approved, in time, once, and used up once",
    async run(harness) {
      const { approvals, interactions, operations, decisions } = harness.store.tenant(TENANT);
      const { id } = await stagedIn("pending_ml", harness);
      const preview = previewOf(id);
      const { hash } = await approvals.show(showing(preview), BY);
      assert.deepEqual(await approvals.shown(id), { preview, hash, definitions: [] });
      assert.notEqual(previewHash({ ...preview, nonce: "n-2" }), hash);
      await refuses("illegal_transition", () => approvals.show(showing(preview), BY));
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
    },
  },
  {
    name: "approvals: T34 I13 after their time they neither approve nor start anything, whatever the clock does",
    async run(harness) {
      const { approvals, interactions, operations } = harness.store.tenant(TENANT);
      const late = await stagedIn("pending_ml", harness);
      const { hash: lateHash } = await approvals.show(showing(previewOf(late.id)), BY);
      const lateYes = () => interactions.approve(late.id, answered(lateHash, YES));
      const { id, hash } = await approvedAsShown(harness);
      harness.clock.advance(60_001);
      await refuses("approval_void", lateYes);
      const start = () => operations.start(intent({ approval: { decisionId: id, hash } }));
      assert.deepEqual(await start(), { started: false, reason: "expired_or_changed" });
      // A clock that steps back revives nothing once the trail has seen the later time.
      await stagedIn("pending_tech", harness);
      harness.clock.set(START);
      assert.deepEqual(await start(), { started: false, reason: "expired_or_changed" });
      await refuses("approval_void", lateYes);
    },
  },
  {
    name: "epoch: T37 I27 nothing starts that was approved in an earlier life of the store, in no process",
    async run(harness) {
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
    },
  },
  {
    name: "switch: T38 I30 once it is thrown nothing starts; reading and resuming still work",
    async run({ store, clock }) {
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
    },
  },
];
