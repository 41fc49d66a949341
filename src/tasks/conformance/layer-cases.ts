import assert from "node:assert/strict";
import { isSallyportError, SallyportError } from "../../model/errors.ts";
import { TASK_STATUSES, type TaskStatus } from "../../model/task.ts";
import { NOWHERE, refuses } from "../../store/conformance/samples.ts";
import type { TaskStore } from "../../store/tasks.ts";
import { plain, type TaskCase } from "./case.ts";

/** What is the task list's and what is the store's. */
export const taskLayerCases: readonly TaskCase[] = [
  {
    name: "layers: S4-01 a store has no rules: it swaps what the task list would refuse",
    async run({ store, tasks }) {
      const { id } = await tasks.add({ subject: "A task" });
      const done = await tasks.complete({ id, result: "done" });
      await refuses("not_claimable", () => tasks.claim({ id, claimer: "bob" }));
      const { status } = await store.compareAndSwap({ ...done, status: "pending" }, done.version);
      assert.equal(status, "pending");
      assert.equal((await tasks.claim({ id, claimer: "bob" })).status, "claimed");
    },
  },
  {
    name: "layers: S4-02 S4-70 the task list needs get, compare-and-swap, list and close, and no more",
    async run({ store, list }) {
      const tasks = list({ store: plain(store) });
      const added = await tasks.addAll([{ subject: "one" }, { subject: "two" }]);
      await tasks.claimNext({ claimer: "bob" });
      await tasks.complete({ id: added[0]?.id ?? "", result: "done" });
      await tasks.fail({ id: added[1]?.id ?? "", reason: "no" });
      await tasks.reopen({ id: added[1]?.id ?? "" });
      const statuses = (await tasks.list()).map(({ status }) => status);
      assert.deepEqual(statuses, ["completed", "pending"]);
    },
  },
  {
    name: "layers: L6 pages hold every task once and in order, by status too, also while others are added",
    async run({ tasks }) {
      const drafts = Array.from({ length: 7 }, (_, n) => ({ subject: `task ${n}` }));
      const added = await tasks.addAll(drafts);
      await tasks.complete({ id: added[1]?.id ?? "", result: "done" });
      await tasks.fail({ id: added[4]?.id ?? "", reason: "no" });
      await tasks.claim({ id: added[5]?.id ?? "", claimer: "bob" });
      const read = async (status?: TaskStatus) => {
        const subjects: string[] = [];
        for (let after: number | undefined = 0; after !== undefined; ) {
          const query = { after, limit: 2, ...(status === undefined ? {} : { status }) };
          const page = await tasks.page(query);
          assert.ok(page.tasks.length <= 2);
          assert.equal(page.places.length, page.tasks.length);
          subjects.push(...page.tasks.map(({ subject }) => subject));
          after = page.next;
          if (status === undefined && subjects.length === 4) await tasks.add({ subject: "late" });
        }
        return subjects;
      };
      assert.deepEqual(await read("pending"), ["task 0", "task 2", "task 3", "task 6"]);
      assert.deepEqual(await read("completed"), ["task 1"]);
      assert.deepEqual(await read("failed"), ["task 4"]);
      assert.deepEqual(await read("claimed"), ["task 5"]);
      assert.deepEqual(await read(), [...drafts.map(({ subject }) => subject), "late"]);
    },
  },
  {
    name: "layers: S4-03 two task lists over one store see each other's changes at once",
    async run({ tasks, list }) {
      const other = list();
      const { id } = await tasks.add({ subject: "A task" });
      assert.equal((await other.claim({ id, claimer: "bob" })).claimer, "bob");
      assert.equal((await tasks.get(id)).claimer, "bob");
      await tasks.complete({ id, result: "done" });
      assert.equal((await other.get(id)).result, "done");
    },
  },
  {
    name: "layers: S4-05 the task list hands out its store, and closing it closes the store",
    async run({ store, list }) {
      let closed = 0;
      const counting: TaskStore = {
        ...plain(store),
        async close() {
          closed += 1;
        },
      };
      const tasks = list({ store: counting });
      assert.equal(tasks.store(), counting);
      await tasks.close();
      assert.equal(closed, 1);
    },
  },
  {
    name: "layers: S4-06 what the store throws is the answer of that same call",
    async run({ store, list, tasks }) {
      const { id } = await tasks.add({ subject: "A task" });
      const broken = new Error("the disk is gone");
      const fail = async () => Promise.reject(broken);
      const reading = list({ store: { ...plain(store), get: fail, list: fail } });
      const writing = list({ store: { ...plain(store), compareAndSwap: fail } });
      const calls = [
        () => reading.get(id),
        () => reading.list(),
        () => reading.findByStatus("pending"),
        () => reading.claim({ id, claimer: "bob" }),
        () => reading.claimNext({ claimer: "bob" }),
        () => writing.add({ subject: "Another" }),
        () => writing.claim({ id, claimer: "bob" }),
        () => writing.claimNext({ claimer: "bob" }),
        () => writing.complete({ id, result: "done" }),
        () => writing.fail({ id, reason: "no" }),
      ];
      for (const call of calls) await assert.rejects(call, (error) => error === broken);
      assert.equal((await tasks.get(id)).version, 1);
    },
  },
  {
    name: "layers: S4-07 leader and worker alike may add, list, claim, complete and fail",
    async run({ tasks }) {
      for (const who of ["leader", "worker-1"]) {
        const one = await tasks.add({ subject: `${who} completes` });
        const two = await tasks.add({ subject: `${who} fails` });
        await tasks.claim({ id: one.id, claimer: who });
        await tasks.complete({ id: one.id, result: who });
        await tasks.claim({ id: two.id, claimer: who });
        await tasks.fail({ id: two.id, reason: who });
      }
      const statuses = (await tasks.list()).map(({ status }) => status);
      assert.deepEqual(statuses, ["completed", "failed", "completed", "failed"]);
    },
  },
  {
    name: "errors: S4-17 five codes, told apart and recognised after wrapping",
    async run({ store, tasks }) {
      const { id } = await tasks.add({ subject: "A task" });
      const task = await tasks.complete({ id, result: "done" });
      const calls = {
        not_found: () => tasks.get(NOWHERE),
        already_exists: () => store.compareAndSwap(task, 0),
        concurrent_modification: () => store.compareAndSwap(task, 1),
        not_claimable: () => tasks.claim({ id, claimer: "bob" }),
        already_completed: () => tasks.complete({ id, result: "again" }),
      } as const;
      const codes = Object.keys(calls) as (keyof typeof calls)[];
      for (const code of codes) {
        const wrapped = new Error("wrapped", { cause: await refuses(code, calls[code]) });
        const recognised = codes.filter((other) => isSallyportError(wrapped, other));
        assert.deepEqual(recognised, [code]);
      }
    },
  },
  {
    name: "errors: S4-18 a concurrent modification says to read again, and then the same change succeeds",
    async run({ store, tasks }) {
      const task = await tasks.add({ subject: "A task" });
      await tasks.link({ id: task.id, sessionId: "session-1" });
      const error = await refuses("concurrent_modification", () =>
        store.compareAndSwap({ ...task, subject: "B" }, task.version),
      );
      assert.ok(error instanceof SallyportError);
      assert.equal(error.retry, "after_reread");
      const again = await store.get(task.id);
      assert.equal(
        (await store.compareAndSwap({ ...again, subject: "B" }, again.version)).version,
        3,
      );
    },
  },
  {
    name: "events: every change tells the store what happened and who did it, so that a trail can be written with it",
    async run({ store, list, clock }) {
      const causes: string[] = [];
      const tasks = list({
        store: {
          ...plain(store),
          compareAndSwap(task, version, cause) {
            causes.push(`${cause?.event} ${cause?.actor}`);
            return store.compareAndSwap(task, version, cause);
          },
        },
      });
      const { id } = await tasks.add({ subject: "A task", by: "leader" });
      const claim = () => tasks.claim({ id, claimer: "alice", leaseMs: 1_000 });
      const fence = (await claim()).fence ?? 0;
      await tasks.renew({ id, fence, leaseMs: 1_000 });
      await tasks.link({ id, fence, sessionId: "s", by: "port" });
      await tasks.release({ id, fence });
      await claim();
      clock.advance(1_000);
      await tasks.sweep();
      await tasks.fail({ id, reason: "no" });
      await tasks.reopen({ id, by: "carol" });
      await tasks.block({ id, blockedBy: [] });
      await tasks.claimNext({ claimer: "bob" });
      await tasks.complete({ id, result: "done" });
      assert.deepEqual(causes, [
        "task.added leader",
        "task.claimed alice",
        "task.renewed alice",
        "task.linked port",
        "task.released alice",
        "task.claimed alice",
        "task.expired watchdog",
        "task.failed caller",
        "task.reopened carol",
        "task.blocked caller",
        "task.claimed bob",
        "task.completed caller",
      ]);
    },
  },
  {
    name: "reads: S4-52 get and list give what the store holds",
    async run({ store, tasks }) {
      const one = await tasks.add({ subject: "one" });
      await tasks.add({ subject: "two" });
      assert.deepEqual(await tasks.get(one.id), await store.get(one.id));
      assert.deepEqual(await tasks.list(), await store.list());
    },
  },
  {
    name: "reads: S4-53 find-by-status is a filter over list; create, update, delete and assign do not exist",
    async run({ tasks }) {
      for (const status of TASK_STATUSES) await tasks.add({ subject: status });
      const [, claimed, completed, failed] = await tasks.list();
      await tasks.claim({ id: claimed?.id ?? "", claimer: "bob" });
      await tasks.complete({ id: completed?.id ?? "", result: "done" });
      await tasks.fail({ id: failed?.id ?? "", reason: "no" });
      for (const status of TASK_STATUSES) {
        const found = await tasks.findByStatus(status);
        assert.deepEqual(
          found.map(({ subject }) => subject),
          [status],
        );
      }
      await refuses("invalid_input", () => tasks.findByStatus("done" as "completed"));
      for (const name of ["create", "update", "delete", "assign"]) assert.ok(!(name in tasks));
    },
  },
];
