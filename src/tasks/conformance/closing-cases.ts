import assert from "node:assert/strict";
import type { Task } from "../../model/task.ts";
import { NOWHERE, refuses, START } from "../../store/conformance/samples.ts";
import { toIso } from "../../util/clock.ts";
import { taskIn } from "./add-cases.ts";
import type { TaskCase } from "./case.ts";

/** Complete, fail, re-open. */
export const taskClosingCases: readonly TaskCase[] = [
  ...(["pending", "claimed"] as const).map(
    (status): TaskCase => ({
      name: `complete: S4-38 S4-39 from ${status}: result, time and the next version`,
      async run({ tasks, clock }) {
        const id = await taskIn(status, tasks);
        const before = await tasks.get(id);
        clock.advance(70);
        const completed = await tasks.complete({ id, result: "all done" });
        assert.deepEqual(completed, {
          ...before,
          status: "completed",
          result: "all done",
          completedAt: toIso(START + 70),
          version: before.version + 1,
        });
        assert.deepEqual(await tasks.get(id), completed);
      },
    }),
  ),
  {
    name: "complete: S4-40 again is already_completed, and the first result stays",
    async run({ tasks }) {
      const id = await taskIn("completed", tasks);
      const before = await tasks.get(id);
      await refuses("already_completed", () => tasks.complete({ id, result: "another" }));
      await refuses("already_completed", () => tasks.complete({ id, result: "the first result" }));
      assert.deepEqual(await tasks.get(id), before);
      assert.equal(before.result, "the first result");
    },
  },
  {
    name: "complete: S4-41 a plain claim does not ask who completes it",
    async run({ list, tasks }) {
      const id = await taskIn("claimed", tasks);
      const task = await list().complete({ id, result: "by the leader" });
      assert.deepEqual([task.status, task.claimer], ["completed", "alice"]);
    },
  },
  {
    name: "complete: S4-42 a failed task is refused and stays as it is",
    async run({ tasks }) {
      const id = await taskIn("failed", tasks);
      const before = await tasks.get(id);
      await refuses("illegal_transition", () => tasks.complete({ id, result: "done" }));
      assert.deepEqual(await tasks.get(id), before);
    },
  },
  {
    name: "complete: S4-43 S4-44 S4-03 observers on any list hear of it after the swap, once, and not when it was refused",
    async run({ store, list, tasks }) {
      const heard: [Task, Task][] = [];
      const stop = list().onCompleted(async (task) => {
        heard.push([task, await store.get(task.id)]);
      });
      const id = await taskIn("claimed", tasks);
      await refuses("not_found", () => tasks.complete({ id: NOWHERE, result: "x" }));
      const done = await tasks.complete({ id, result: "all done" });
      await refuses("already_completed", () => tasks.complete({ id, result: "again" }));
      const failed = await taskIn("failed", tasks);
      await refuses("illegal_transition", () => tasks.complete({ id: failed, result: "x" }));
      stop();
      await taskIn("completed", tasks);
      await store.get(id);
      assert.deepEqual(heard, [[done, done]]);
    },
  },
  {
    name: "complete: S4-44 of two racing completions one is made and one event raised",
    async run({ list, tasks }) {
      let heard = 0;
      tasks.onCompleted(() => {
        heard += 1;
      });
      const id = await taskIn("claimed", tasks);
      const results = await Promise.allSettled([
        tasks.complete({ id, result: "one" }),
        list().complete({ id, result: "two" }),
      ]);
      assert.equal(results.filter(({ status }) => status === "fulfilled").length, 1);
      assert.equal(heard, 1);
    },
  },
  {
    name: "complete: S4-44 an observer that throws stops neither the completion nor the other observers",
    async run({ list }) {
      const errors: unknown[] = [];
      const tasks = list({ onObserverError: (error) => errors.push(error) });
      const heard: string[] = [];
      const oops = new Error("oops");
      tasks.onCompleted(() => {
        throw oops;
      });
      tasks.onCompleted(() => Promise.reject(oops));
      tasks.onCompleted(({ id }) => void heard.push(id));
      const id = await taskIn("completed", tasks);
      await tasks.get(id);
      assert.deepEqual(heard, [id]);
      assert.deepEqual(errors, [oops, oops]);
    },
  },
  ...(["pending", "claimed"] as const).map(
    (status): TaskCase => ({
      name: `fail: S4-45 S4-47 from ${status}: the reason is there for others to read`,
      async run({ tasks, again, clock }) {
        const id = await taskIn(status, tasks);
        const before = await tasks.get(id);
        clock.advance(70);
        const failed = await tasks.fail({ id, reason: "the bank said no:\n> why" });
        assert.deepEqual(
          [failed.status, failed.failureReason, failed.version, failed.claimer],
          ["failed", "the bank said no:\n> why", before.version + 1, before.claimer],
        );
        assert.deepEqual(await (await again()).get(id), failed);
      },
    }),
  ),
  {
    name: "fail: S4-46 a completed task is already_completed and stays as it is",
    async run({ tasks }) {
      const id = await taskIn("completed", tasks);
      const before = await tasks.get(id);
      await refuses("already_completed", () => tasks.fail({ id, reason: "late" }));
      assert.deepEqual(await tasks.get(id), before);
    },
  },
  {
    name: "fail: S4-47 a failed task is refused, and the first reason stays",
    async run({ tasks }) {
      const id = await taskIn("failed", tasks);
      const before = await tasks.get(id);
      await refuses("illegal_transition", () => tasks.fail({ id, reason: "another" }));
      assert.deepEqual(await tasks.get(id), before);
      assert.equal(before.failureReason, "the first reason");
    },
  },
  {
    name: "fail: unknown ids are not_found, for complete and reopen too",
    async run({ tasks }) {
      await refuses("not_found", () => tasks.fail({ id: NOWHERE, reason: "x" }));
      await refuses("not_found", () => tasks.complete({ id: NOWHERE, result: "x" }));
      await refuses("not_found", () => tasks.reopen({ id: NOWHERE }));
    },
  },
  {
    name: "reopen: S4-49 S4-50 S4-51 a failed task is pending again, without claimer, and remembers its failure",
    async run({ tasks, clock }) {
      const id = await taskIn("claimed", tasks);
      await tasks.fail({ id, reason: "no luck" });
      await refuses("not_claimable", () => tasks.claim({ id, claimer: "bob" }));
      clock.advance(70);
      const open = await tasks.reopen({ id, by: "carol", reason: "try again" });
      assert.equal(open.status, "pending");
      for (const name of ["claimer", "claimedAt", "failureReason"])
        assert.ok(!(name in open), name);
      assert.deepEqual(open.history, [
        { at: toIso(START), what: "failed", by: "alice", reason: "no luck", fence: 2 },
        { at: toIso(START + 70), what: "reopened", by: "carol", reason: "try again" },
      ]);
      const claimed = await tasks.claim({ id, claimer: "bob" });
      assert.deepEqual([claimed.claimer, claimed.history], ["bob", open.history]);
    },
  },
  {
    name: "reopen: S4-49 S4-51 by hand, through the store: it can be claimed, and the reason moves into the history",
    async run({ store, tasks }) {
      const { id } = await tasks.add({ subject: "A task" });
      const failed: Task = {
        ...(await tasks.get(id)),
        status: "failed",
        claimer: "alice",
        failureReason: "no luck",
      };
      await store.compareAndSwap(failed, 1);
      await refuses("not_claimable", () => tasks.claim({ id, claimer: "bob" }));
      await store.compareAndSwap({ ...failed, status: "pending" }, 2);
      const claimed = await tasks.claim({ id, claimer: "bob" });
      assert.equal(claimed.claimer, "bob");
      assert.equal(claimed.failureReason, undefined);
      assert.deepEqual(claimed.history, [
        { at: toIso(START), what: "failed", by: "alice", reason: "no luck" },
      ]);
    },
  },
  {
    name: "reopen: only a failed task",
    async run({ tasks }) {
      for (const status of ["pending", "claimed"] as const) {
        const id = await taskIn(status, tasks);
        await refuses("illegal_transition", () => tasks.reopen({ id }));
      }
      const id = await taskIn("completed", tasks);
      await refuses("already_completed", () => tasks.reopen({ id }));
    },
  },
  {
    name: "reopen: after fifty failures it is refused, and none of them is forgotten",
    async run({ tasks }) {
      const { id } = await tasks.add({ subject: "A task" });
      for (let n = 1; n <= 50; n += 1) {
        await tasks.fail({ id, reason: `reason ${n}` });
        if (n < 50) await tasks.reopen({ id });
      }
      await refuses("payload_too_large", () => tasks.reopen({ id }));
      const reasons = (await tasks.get(id)).history?.filter(({ what }) => what === "failed");
      assert.equal(new Set(reasons?.map(({ reason }) => reason)).size, 50);
    },
  },
];
