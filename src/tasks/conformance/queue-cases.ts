import assert from "node:assert/strict";
import type { Task } from "../../model/task.ts";
import { NOWHERE, refuses, START, together } from "../../store/conformance/samples.ts";
import type { TaskStore } from "../../store/tasks.ts";
import { toIso } from "../../util/clock.ts";
import { casesOf, fourOperations, type TaskCase } from "./store-cases.ts";

/** Which task is next, and which must wait: roles, priorities, dependencies, batches, what is stuck. */
export const taskQueueCases: readonly TaskCase[] = [
  ...casesOf({
    "next: returns the highest priority, then the oldest, then undefined": async ({ tasks }) => {
      await tasks.add({ subject: "old" });
      await tasks.add({ subject: "low", priority: -1 });
      await tasks.add({ subject: "new" });
      await tasks.add({ subject: "high", priority: 5 });
      const order = [];
      for (let n = 0; n < 5; n += 1)
        order.push((await tasks.claimNext({ claimer: "bob" }))?.subject);
      assert.deepEqual(order, ["high", "old", "new", "low", undefined]);
    },
    "next: sixteen workers on two handles get twenty different tasks, then undefined": async ({
      tasks,
      list,
      again,
    }) => {
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
    "next: a task is available when its lease has ended, not before": async ({ tasks, clock }) => {
      const { id } = await tasks.add({ subject: "A task" });
      await tasks.claimNext({ claimer: "alice", leaseMs: 1_000 });
      assert.equal(await tasks.claimNext({ claimer: "bob", leaseMs: 1_000 }), undefined);
      clock.advance(1_000);
      const taken = await tasks.claimNext({ claimer: "bob", leaseMs: 1_000 });
      assert.deepEqual([taken?.id, taken?.claimer], [id, "bob"]);
    },
    "roles: only a claimer with the role gets the task, by id or next": async ({ tasks }) => {
      const { id } = await tasks.add({ subject: "A task", role: "writer" });
      await refuses("not_claimable", () => tasks.claim({ id, claimer: "reader" }));
      const terms = { claimer: "reader", roles: ["explore", "verify"] };
      await refuses("not_claimable", () => tasks.claim({ id, ...terms }));
      assert.equal(await tasks.claimNext(terms), undefined);
      assert.equal(await tasks.claimNext({ claimer: "reader" }), undefined);
      const task = await tasks.claimNext({ claimer: "w", roles: ["verify", "writer"] });
      assert.deepEqual([task?.id, task?.claimer], [id, "w"]);
    },
    "blocked: a task waits for all its blockers to be completed; a failed blocker still blocks":
      async ({ tasks }) => {
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
    "blocked: a blocker must exist": async ({ tasks }) => {
      const add = () => tasks.add({ subject: "A task", blockedBy: [NOWHERE] });
      await refuses("not_found", add);
      assert.deepEqual(await tasks.list(), []);
    },
    "blocked: the blockers of a pending task can be set, but a cycle is rejected": async ({
      tasks,
    }) => {
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
    "blocked: two concurrent calls that would form a cycle leave none": async ({
      store,
      tasks,
      list,
    }) => {
      const [a, b] = await tasks.addAll([{ subject: "a" }, { subject: "b" }]);
      let lists = 0;
      const { promise: bothRead, resolve } = Promise.withResolvers<void>();
      const together_ = {
        ...fourOperations(store),
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
    "batch: tasks are returned in order, blocked by keys of the batch": async ({ tasks }) => {
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
    "batch: one invalid task rejects all: subject, cycle, duplicate key, missing blocker, too many":
      async ({ tasks }) => {
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
    "batch: a store with transactions writes all or none": async ({ store, list }) => {
      const ids = ["task-1", "task-2", "task-2"];
      const tasks = list({ ids: { next: () => ids.shift() ?? "" } });
      const three = [{ subject: "a" }, { subject: "b" }, { subject: "c" }];
      await refuses("already_exists", () => tasks.addAll(three));
      const left = await tasks.list();
      assert.equal(left.length, canWriteSeveral(store) ? 0 : 2);
    },
    "links: a task has a session, a delegation and decisions, which add up": async ({ tasks }) => {
      const { id } = await tasks.add({ subject: "A task", sessionId: "session-1" });
      await tasks.link({ id, decisionIds: ["dec-1"], delegationId: "del-1" });
      const task = await tasks.link({ id, decisionIds: ["dec-2", "dec-1"] });
      assert.deepEqual(
        [task.sessionId, task.delegationId, task.decisionIds],
        ["session-1", "del-1", ["dec-1", "dec-2"]],
      );
      assert.deepEqual(await tasks.get(id), task);
    },
    "links: a guard decides about completion; an error, or anything but true, means no": async ({
      list,
    }) => {
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
      for (const other of [undefined, null, false, 1, "true", {}, []]) {
        answer = () => other;
        await refuses("dependency_denied", complete);
      }
      answer = () => true;
      assert.equal((await complete()).status, "completed");
      answer = () => "asked again";
      await refuses("already_completed", complete);
    },
    "links: a guard that outlasts the lease does not complete the task": async ({
      list,
      clock,
    }) => {
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
    "stuck: finds expired leases, old claims and tasks blocked by a failed one, nothing else":
      async ({ tasks, clock }) => {
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
  }),
];

function canWriteSeveral({ transact, direct }: TaskStore): boolean {
  return transact !== undefined || direct !== undefined;
}

const subjects = (tasks: readonly Task[]) => tasks.map(({ subject }) => subject);

/** Batches of claims, and what is next after a release. */
export const taskBatchCases: readonly TaskCase[] = [
  ...casesOf({
    "many: returns the best tasks first, and fewer when there are no more": async ({ tasks }) => {
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
    "many: eight workers that claim five at a time never share one": async ({
      tasks,
      list,
      again,
    }) => {
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
  }),
  ...[0, -1, 0.5, 1_001, Number.NaN].map(
    (limit): TaskCase => ({
      name: `many: a limit of ${limit} is rejected`,
      async run({ tasks }) {
        await tasks.add({ subject: "A task" });
        await refuses("invalid_input", () => tasks.claimBatch({ claimer: "bob", limit }));
        assert.equal((await tasks.findByStatus("pending")).length, 1);
      },
    }),
  ),
  ...casesOf({
    "next: a task that was released, reopened or expired returns to its old place": async ({
      tasks,
      list,
      again,
      clock,
    }) => {
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
    "next: a task that is taken over records its former holder": async ({ tasks, clock }) => {
      await tasks.add({ subject: "A task" });
      const terms = { leaseMs: 1_000 };
      const lost = await tasks.claimNext({ ...terms, claimer: "alice" });
      clock.advance(1_000);
      const taken = await tasks.claimNext({ ...terms, claimer: "bob" });
      const at = toIso(START + 1_000);
      assert.deepEqual(taken?.history, [{ at, what: "expired", by: "alice", fence: lost?.fence }]);
      assert.ok((taken?.fence ?? 0) > (lost?.fence ?? 0));
    },
    "next: after the lease a claim can be neither renewed nor completed, taken over or not [I12 T34]":
      async ({ tasks, clock }) => {
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
    "next: a task set to pending through the store is claimed without its earlier claim [S4-49 S4-51]":
      async ({ store, tasks }) => {
        const { id } = await tasks.add({ subject: "A task" });
        await tasks.claim({ id, claimer: "alice", leaseMs: 1_000 });
        const failed = await tasks.fail({ id, fence: "any", reason: "no luck" });
        await store.compareAndSwap({ ...failed, status: "pending" }, failed.version);
        const task = await tasks.claimNext({ claimer: "bob" });
        assert.deepEqual([task?.claimer, task?.failureReason], ["bob", undefined]);
        assert.equal(task?.history?.[0]?.reason, "no luck");
        assert.deepEqual(await tasks.get(id), task);
      },
    "blocked: a task whose last blockers are completed concurrently is next": async ({
      tasks,
      list,
      again,
    }) => {
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
    "blocked: a task added with a claimed blocker is next when that one is completed": async ({
      tasks,
      list,
      again,
    }) => {
      const other = list({ store: await again() });
      const { id } = await tasks.add({ subject: "blocker" });
      const held = await tasks.claimNext({ claimer: "bob", leaseMs: 1_000 });
      const waiting = await other.add({ subject: "waits", blockedBy: [id] });
      assert.equal(await tasks.claimNext({ claimer: "bob" }), undefined);
      await tasks.complete({ id, fence: held?.fence ?? 0, result: "" });
      assert.equal((await tasks.claimNext({ claimer: "bob" }))?.id, waiting.id);
    },
    "blocked: a task added while its blocker is being completed is not blocked for ever": async ({
      tasks,
      list,
      again,
    }) => {
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
    "blocked: a task without open blockers is next, one with an open blocker is not": async ({
      tasks,
    }) => {
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
  }),
];
