import assert from "node:assert/strict";
import type { Task } from "../../model/task.ts";
import { refuses, START, together } from "../../store/conformance/samples.ts";
import { toIso } from "../../util/clock.ts";
import type { TaskCase } from "./case.ts";

const subjects = (tasks: readonly Task[]) => tasks.map(({ subject }) => subject);

/** Several at once, and what is next after something was given back. */
export const taskBatchCases: readonly TaskCase[] = [
  {
    name: "many: the best tasks first, claimed for one claimer, and fewer when there are no more",
    async run({ tasks }) {
      await tasks.addAll([
        { subject: "old" },
        { subject: "high", priority: 5 },
        { subject: "new" },
        { subject: "writers only", role: "writer", priority: 9 },
      ]);
      const terms = { claimer: "bob", leaseMs: 1_000 };
      const two = await tasks.claimBatch({ ...terms, limit: 2 });
      assert.deepEqual(subjects(two), ["high", "old"]);
      for (const task of two) {
        assert.deepEqual([task.status, task.claimer, task.fence], ["claimed", "bob", 2]);
        assert.deepEqual(await tasks.get(task.id), task);
      }
      assert.deepEqual(subjects(await tasks.claimBatch({ ...terms, limit: 5 })), ["new"]);
      assert.deepEqual(await tasks.claimBatch({ ...terms, limit: 5 }), []);
    },
  },
  {
    name: "many: eight workers on two handles that claim five at a time never share one",
    async run({ tasks, list, again }) {
      const other = list({ store: await again() });
      await tasks.addAll(Array.from({ length: 32 }, (_, n) => ({ subject: `Task ${n}` })));
      const got = await together(8, async (n) => {
        const mine: Task[] = [];
        for (;;) {
          const list_ = n % 2 === 0 ? tasks : other;
          const some = await list_.claimBatch({ claimer: `worker-${n}`, limit: 5 });
          if (some.length === 0) return mine;
          mine.push(...some);
        }
      });
      const ids = got.flat().map(({ id }) => id);
      assert.deepEqual([ids.length, new Set(ids).size], [32, 32]);
    },
  },
  ...[0, -1, 0.5, 1_001, Number.NaN].map(
    (limit): TaskCase => ({
      name: `many: ${limit} tasks cannot be asked for`,
      async run({ tasks }) {
        await tasks.add({ subject: "A task" });
        await refuses("invalid_input", () => tasks.claimBatch({ claimer: "bob", limit }));
        assert.equal((await tasks.findByStatus("pending")).length, 1);
      },
    }),
  ),
  {
    name: "next: what was given back, re-opened or lost its lease has its old place again, whoever gave it back",
    async run({ tasks, list, again, clock }) {
      const other = list({ store: await again() });
      await tasks.addAll(["a", "b", "c", "d", "e"].map((subject) => ({ subject })));
      const claim = () => tasks.claimNext({ claimer: "bob", leaseMs: 1_000 });
      const [a, b, c] = [await claim(), await claim(), await claim()];
      await other.release({ id: c?.id ?? "", fence: c?.fence ?? 0 });
      await other.fail({ id: b?.id ?? "", fence: b?.fence ?? 0, reason: "no" });
      assert.equal((await claim())?.subject, "c");
      await other.reopen({ id: b?.id ?? "" });
      assert.equal((await claim())?.subject, "b");
      await tasks.renew({ id: a?.id ?? "", fence: a?.fence ?? 0, leaseMs: 5_000 });
      clock.advance(1_000);
      assert.equal((await claim())?.subject, "b");
      assert.equal((await claim())?.subject, "c");
      assert.equal((await claim())?.subject, "d");
      await other.add({ subject: "urgent", priority: 1 });
      assert.equal((await claim())?.subject, "urgent");
    },
  },
  {
    name: "next: a task that is taken over remembers who lost it",
    async run({ tasks, clock }) {
      await tasks.add({ subject: "A task" });
      const terms = { leaseMs: 1_000 };
      const lost = await tasks.claimNext({ ...terms, claimer: "alice" });
      clock.advance(1_000);
      const taken = await tasks.claimNext({ ...terms, claimer: "bob" });
      const at = toIso(START + 1_000);
      assert.deepEqual(taken?.history, [{ at, what: "expired", by: "alice", fence: lost?.fence }]);
      assert.ok((taken?.fence ?? 0) > (lost?.fence ?? 0));
    },
  },
  {
    name: "next: I12 T34 who got a task as the next one can neither renew nor complete it late, taken over or not",
    async run({ tasks, clock }) {
      await tasks.addAll([{ subject: "a" }, { subject: "b" }]);
      for (const takenOver of [false, true]) {
        const mine = await tasks.claimNext({ claimer: "alice", leaseMs: 1_000 });
        const late = { id: mine?.id ?? "", fence: mine?.fence ?? 0 };
        clock.advance(999);
        await tasks.renew({ ...late, leaseMs: 1_000 });
        clock.advance(1_000);
        if (takenOver) await tasks.claim({ id: late.id, claimer: "bob", leaseMs: 10_000 });
        await refuses("claim_lost", () => tasks.renew({ ...late, leaseMs: 1_000 }));
        await refuses("claim_lost", () => tasks.complete({ ...late, result: "late" }));
        const { status, claimer } = await tasks.get(late.id);
        const expected = takenOver ? ["claimed", "bob"] : ["pending", undefined];
        assert.deepEqual([status, claimer], expected);
        if (!takenOver) await tasks.complete({ id: late.id, result: "by the leader" });
      }
    },
  },
  {
    name: "next: S4-49 S4-51 a task made pending by hand is handed out without the traces of its last claim",
    async run({ store, tasks }) {
      const { id } = await tasks.add({ subject: "A task" });
      await tasks.claim({ id, claimer: "alice", leaseMs: 1_000 });
      const failed = await tasks.fail({ id, fence: "any", reason: "no luck" });
      await store.compareAndSwap({ ...failed, status: "pending" }, failed.version);
      const task = await tasks.claimNext({ claimer: "bob" });
      assert.deepEqual([task?.claimer, task?.failureReason], ["bob", undefined]);
      assert.equal(task?.history?.[0]?.reason, "no luck");
      assert.deepEqual(await tasks.get(id), task);
    },
  },
  {
    name: "blocked: when its last blockers are completed at the same time, on two handles, the task is next",
    async run({ tasks, list, again }) {
      const other = list({ store: await again() });
      const blockers = await tasks.addAll(
        Array.from({ length: 6 }, (_, n) => ({ subject: `Blocker ${n}` })),
      );
      const blockedBy = blockers.map(({ id }) => id);
      const { id } = await tasks.add({ subject: "last", priority: 9, blockedBy });
      await together(6, async (n) => {
        const list_ = n % 2 === 0 ? tasks : other;
        const blocker = blockedBy[n] ?? "";
        const { fence = 0 } = await list_.claim({ id: blocker, claimer: "bob", leaseMs: 1_000 });
        await list_.complete({ id: blocker, fence, result: "" });
      });
      assert.equal((await tasks.claimNext({ claimer: "bob" }))?.id, id);
    },
  },
  {
    name: "blocked: who is told to wait for a task that somebody works on is next when that one is completed",
    async run({ tasks, list, again }) {
      const other = list({ store: await again() });
      const { id } = await tasks.add({ subject: "blocker" });
      const held = await tasks.claimNext({ claimer: "bob", leaseMs: 1_000 });
      const waiting = await other.add({ subject: "waits", blockedBy: [id] });
      assert.equal(await tasks.claimNext({ claimer: "bob" }), undefined);
      await tasks.complete({ id, fence: held?.fence ?? 0, result: "" });
      assert.equal((await tasks.claimNext({ claimer: "bob" }))?.id, waiting.id);
    },
  },
  {
    name: "blocked: who is told to wait for a task that is completed at the same moment does not wait for ever",
    async run({ tasks, list, again }) {
      const other = list({ store: await again() });
      for (let round = 0; round < 8; round += 1) {
        const { id } = await tasks.add({ subject: "blocker" });
        const blocker = await tasks.claimNext({ claimer: "bob", leaseMs: 1_000 });
        assert.equal(blocker?.id, id);
        const [added] = await Promise.all([
          Promise.all([
            other.add({ subject: "waits", blockedBy: [id] }),
            other.add({ subject: "waits too", blockedBy: [id] }),
          ]),
          tasks.complete({ id, fence: blocker?.fence ?? 0, result: "" }),
        ]);
        const next = await tasks.claimBatch({ claimer: "bob", limit: 5 });
        assert.deepEqual(
          next.map((task) => task.id).toSorted(),
          added.map((task) => task.id).toSorted(),
        );
      }
    },
  },
  {
    name: "blocked: a task that waits for nothing any more is next, and one that waits for more is not",
    async run({ tasks }) {
      const [a, b] = await tasks.addAll([{ subject: "a" }, { subject: "b" }]);
      const { id } = await tasks.add({ subject: "c", blockedBy: [a?.id ?? ""], priority: 9 });
      await tasks.block({ id, blockedBy: [b?.id ?? ""] });
      await tasks.complete({ id: a?.id ?? "", result: "" });
      assert.equal((await tasks.claimNext({ claimer: "bob" }))?.id, b?.id);
      assert.equal(await tasks.claimNext({ claimer: "bob" }), undefined);
      await tasks.block({ id, blockedBy: [] });
      assert.equal((await tasks.claimNext({ claimer: "bob" }))?.id, id);
      await tasks.complete({ id: b?.id ?? "", result: "" });
    },
  },
];
