import assert from "node:assert/strict";
import { toIso } from "../../util/clock.ts";
import { type EngineCase, TENANT } from "./case.ts";

import { BY, intent, LEASE, refuses, START, soundTrail, success, together } from "./samples.ts";

/** What is done, by whom, and what becomes of it. */
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
];
