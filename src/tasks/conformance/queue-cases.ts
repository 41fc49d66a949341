import assert from "node:assert/strict";
import type { Task } from "../../model/task.ts";
import { NOWHERE, refuses, together } from "../../store/conformance/samples.ts";
import type { TaskStore } from "../../store/tasks.ts";
import { plain, type TaskCase } from "./case.ts";

/** Which task is next, and which must wait: roles, priorities, dependencies, batches, what is stuck. */
export const taskQueueCases: readonly TaskCase[] = [
  {
    name: "next: the highest priority first, then the oldest, then nothing",
    async run({ tasks }) {
      await tasks.add({ subject: "old" });
      await tasks.add({ subject: "low", priority: -1 });
      await tasks.add({ subject: "new" });
      await tasks.add({ subject: "high", priority: 5 });
      const order = [];
      for (let n = 0; n < 5; n += 1)
        order.push((await tasks.claimNext({ claimer: "bob" }))?.subject);
      assert.deepEqual(order, ["high", "old", "new", "low", undefined]);
    },
  },
  {
    name: "next: a task is handed out once: sixteen workers on two handles get twenty different ones and then nothing",
    async run({ tasks, list, again }) {
      const other = list({ store: await again() });
      await tasks.addAll(Array.from({ length: 20 }, (_, n) => ({ subject: `Task ${n}` })));
      const got = await together(16, async (n) => {
        const mine: Task[] = [];
        for (;;) {
          const next = await (n % 2 === 0 ? tasks : other).claimNext({ claimer: `worker-${n}` });
          if (next === undefined) return mine;
          assert.equal(next.claimer, `worker-${n}`);
          mine.push(next);
        }
      });
      const ids = got.flat().map(({ id }) => id);
      assert.deepEqual([ids.length, new Set(ids).size], [20, 20]);
      assert.ok((await tasks.list()).every(({ version }) => version === 2));
    },
  },
  {
    name: "next: a lease that is over makes a task available, and only then",
    async run({ tasks, clock }) {
      const { id } = await tasks.add({ subject: "A task" });
      await tasks.claimNext({ claimer: "alice", leaseMs: 1_000 });
      assert.equal(await tasks.claimNext({ claimer: "bob", leaseMs: 1_000 }), undefined);
      clock.advance(1_000);
      const taken = await tasks.claimNext({ claimer: "bob", leaseMs: 1_000 });
      assert.deepEqual([taken?.id, taken?.claimer], [id, "bob"]);
    },
  },
  {
    name: "roles: only who has the role gets the task, by name and as the next one",
    async run({ tasks }) {
      const { id } = await tasks.add({ subject: "A task", role: "writer" });
      await refuses("not_claimable", () => tasks.claim({ id, claimer: "reader" }));
      const terms = { claimer: "reader", roles: ["explore", "verify"] };
      await refuses("not_claimable", () => tasks.claim({ id, ...terms }));
      assert.equal(await tasks.claimNext(terms), undefined);
      assert.equal(await tasks.claimNext({ claimer: "reader" }), undefined);
      const task = await tasks.claimNext({ claimer: "w", roles: ["verify", "writer"] });
      assert.deepEqual([task?.id, task?.claimer], [id, "w"]);
    },
  },
  {
    name: "blocked: a task waits until all its blockers are completed; a failed one keeps it waiting",
    async run({ tasks }) {
      const a = await tasks.add({ subject: "a" });
      const b = await tasks.add({ subject: "b" });
      const { id } = await tasks.add({ subject: "c", blockedBy: [a.id, b.id], priority: 9 });
      const claim = () => tasks.claim({ id, claimer: "bob" });
      await refuses("not_claimable", claim);
      assert.equal((await tasks.claimNext({ claimer: "bob" }))?.id, a.id);
      await tasks.complete({ id: a.id, result: "" });
      await tasks.fail({ id: b.id, reason: "no" });
      await refuses("not_claimable", claim);
      assert.equal(await tasks.claimNext({ claimer: "bob" }), undefined);
      await tasks.reopen({ id: b.id });
      await tasks.complete({ id: b.id, result: "" });
      assert.equal((await claim()).status, "claimed");
    },
  },
  {
    name: "blocked: a blocker must exist",
    async run({ tasks }) {
      const add = () => tasks.add({ subject: "A task", blockedBy: [NOWHERE] });
      await refuses("not_found", add);
      assert.deepEqual(await tasks.list(), []);
    },
  },
  {
    name: "blocked: what a pending task waits for can be set, but never so that tasks wait in a circle",
    async run({ tasks }) {
      const [a, b, c] = await tasks.addAll([
        { subject: "a", key: "a" },
        { subject: "b", key: "b", blockedBy: ["a"] },
        { subject: "c", blockedBy: ["b"] },
      ]);
      const id = a?.id ?? "";
      const circle = () => tasks.block({ id, blockedBy: [c?.id ?? ""] });
      const error = await refuses("invalid_input", circle);
      assert.equal((error.details["cycle"] as string[]).length, 4);
      await refuses("invalid_input", () => tasks.block({ id, blockedBy: [id] }));
      await refuses("not_found", () => tasks.block({ id, blockedBy: [NOWHERE] }));
      await refuses("not_found", () => tasks.block({ id: NOWHERE, blockedBy: [] }));
      assert.deepEqual(await tasks.get(id), a);
      const freed = await tasks.block({ id: b?.id ?? "", blockedBy: [] });
      assert.equal(freed.blockedBy, undefined);
      await circle();
      assert.deepEqual((await tasks.get(id)).blockedBy, [c?.id]);
      await tasks.claim({ id: freed.id, claimer: "bob" });
      await refuses("illegal_transition", () => tasks.block({ id: freed.id, blockedBy: [] }));
    },
  },
  {
    name: "blocked: two calls that together would close a circle do not leave one",
    async run({ store, tasks, list }) {
      const [a, b] = await tasks.addAll([{ subject: "a" }, { subject: "b" }]);
      let lists = 0;
      const { promise: bothRead, resolve } = Promise.withResolvers<void>();
      const together_ = {
        ...plain(store),
        async list() {
          const all = await store.list();
          lists += 1;
          if (lists === 2) resolve();
          if (lists <= 2) await bothRead;
          return all;
        },
      };
      const both = list({ store: together_ });
      const results = await Promise.allSettled([
        both.block({ id: a?.id ?? "", blockedBy: [b?.id ?? ""] }),
        both.block({ id: b?.id ?? "", blockedBy: [a?.id ?? ""] }),
      ]);
      assert.ok(results.some(({ status }) => status === "rejected"));
      const stuck = await tasks.findStuck({ claimedForMs: 1 });
      assert.deepEqual(stuck, []);
    },
  },
  {
    name: "batch: all come back in order, blocked by each other's keys",
    async run({ tasks }) {
      const added = await tasks.addAll([
        { subject: "second", blockedBy: ["one"] },
        { subject: "first", key: "one" },
      ]);
      assert.deepEqual(
        added.map(({ subject }) => subject),
        ["second", "first"],
      );
      assert.deepEqual(added[0]?.blockedBy, [added[1]?.id]);
      assert.deepEqual(await tasks.list(), added);
      assert.equal((await tasks.claimNext({ claimer: "bob" }))?.subject, "first");
      assert.deepEqual(await tasks.addAll([]), []);
    },
  },
  {
    name: "batch: one that is wrong stops all: a subject, a circle, a key twice, a missing blocker, too many",
    async run({ tasks }) {
      const good = { subject: "good" };
      await refuses("invalid_input", () => tasks.addAll([good, { subject: "" }]));
      const circle = [
        { subject: "a", key: "a", blockedBy: ["b"] },
        { subject: "b", key: "b", blockedBy: ["a"] },
      ];
      await refuses("invalid_input", () => tasks.addAll([good, ...circle]));
      const twice = { subject: "k", key: "k" };
      await refuses("invalid_input", () => tasks.addAll([twice, twice]));
      await refuses("not_found", () => tasks.addAll([good, { ...good, blockedBy: [NOWHERE] }]));
      const many = Array.from({ length: 1_001 }, () => good);
      await refuses("payload_too_large", () => tasks.addAll(many));
      assert.deepEqual(await tasks.list(), []);
    },
  },
  {
    name: "batch: a store that can write several at once writes all or none",
    async run({ store, list }) {
      const ids = ["task-1", "task-2", "task-2"];
      const tasks = list({ ids: { next: () => ids.shift() ?? "" } });
      const three = [{ subject: "a" }, { subject: "b" }, { subject: "c" }];
      await refuses("already_exists", () => tasks.addAll(three));
      const left = await tasks.list();
      assert.equal(left.length, canWriteSeveral(store) ? 0 : 2);
    },
  },
  {
    name: "links: a task is tied to its session, delegation and decisions, and decisions add up",
    async run({ tasks }) {
      const { id } = await tasks.add({ subject: "A task", sessionId: "session-1" });
      await tasks.link({ id, decisionIds: ["dec-1"], delegationId: "del-1" });
      const task = await tasks.link({ id, decisionIds: ["dec-2", "dec-1"] });
      assert.deepEqual(
        [task.sessionId, task.delegationId, task.decisionIds],
        ["session-1", "del-1", ["dec-1", "dec-2"]],
      );
      assert.deepEqual(await tasks.get(id), task);
    },
  },
  {
    name: "links: a guard decides whether a task may be completed; its error, and whatever is not true, is a no",
    async run({ list }) {
      let answer: () => unknown = () => "Decision dec-1 is not executed yet.";
      const tasks = list({ mayComplete: async () => answer() as true });
      const { id } = await tasks.add({ subject: "A task" });
      const complete = () => tasks.complete({ id, result: "done" });
      const error = await refuses("dependency_denied", complete);
      assert.match(error.message, /dec-1 is not executed/);
      const oops = new Error("oops");
      answer = () => {
        throw oops;
      };
      assert.equal((await refuses("dependency_denied", complete)).cause, oops);
      assert.equal((await tasks.get(id)).version, 1);
      for (const odd of [undefined, null, false, 1, "true", {}, []]) {
        answer = () => odd;
        await refuses("dependency_denied", complete);
      }
      answer = () => true;
      assert.equal((await complete()).status, "completed");
      answer = () => "asked again";
      await refuses("already_completed", complete);
    },
  },
  {
    name: "links: a guard that takes longer than the lease cannot complete the task",
    async run({ list, clock }) {
      const mayComplete = async () => {
        clock.advance(1_000);
        return true as const;
      };
      const tasks = list({ mayComplete });
      const { id } = await tasks.add({ subject: "A task" });
      const { fence = 0 } = await tasks.claim({ id, claimer: "alice", leaseMs: 1_000 });
      await refuses("claim_lost", () => tasks.complete({ id, fence, result: "late" }));
      assert.equal((await tasks.get(id)).status, "pending");
    },
  },
  {
    name: "stuck: a lease that is over, an old claim, and who waits for a failed task are found, others are not",
    async run({ tasks, clock }) {
      const leased = await tasks.add({ subject: "leased" });
      await tasks.claim({ id: leased.id, claimer: "alice", leaseMs: 1_000 });
      const old = await tasks.add({ subject: "old" });
      await tasks.claim({ id: old.id, claimer: "bob" });
      const failed = await tasks.add({ subject: "failed" });
      await tasks.fail({ id: failed.id, reason: "no" });
      const waiting = await tasks.add({ subject: "waiting", blockedBy: [failed.id] });
      await tasks.add({ subject: "free" });
      clock.advance(999);
      const fresh = await tasks.add({ subject: "fresh" });
      await tasks.claim({ id: fresh.id, claimer: "carol" });
      const find = async () =>
        (await tasks.findStuck({ claimedForMs: 1_000 })).map(({ task, why }) => [task.id, why]);
      assert.deepEqual(await find(), [[waiting.id, "blocked_by_failed"]]);
      clock.advance(1);
      assert.deepEqual(await find(), [
        [leased.id, "lease_over"],
        [old.id, "claimed_long"],
        [waiting.id, "blocked_by_failed"],
      ]);
    },
  },
];

function canWriteSeveral({ transact, direct }: TaskStore): boolean {
  return transact !== undefined || direct !== undefined;
}
