import assert from "node:assert/strict";
import { TASK_STATUSES, type Task } from "../../model/task.ts";
import { NOWHERE, refuses, together } from "../../store/conformance/samples.ts";
import { FULL_TASK, type TaskCase } from "./case.ts";

const PLAIN: Task = {
  id: "task-1",
  subject: "A task",
  description: "",
  status: "pending",
  createdAt: "2026-11-15T06:00:00.000Z",
  version: 1,
};

/** The four operations. */
export const taskStoreCases: readonly TaskCase[] = [
  {
    name: "get: S4-19 an unknown id is not_found",
    async run({ store }) {
      await refuses("not_found", () => store.get(NOWHERE));
      await store.compareAndSwap(PLAIN, 0);
      await refuses("not_found", () => store.get(NOWHERE));
    },
  },
  {
    name: "swap: S4-20 S4-30 expected version 0 inserts as version 1, and only what is absent",
    async run({ store }) {
      assert.deepEqual(await store.compareAndSwap(PLAIN, 0), PLAIN);
      await refuses("already_exists", () => store.compareAndSwap({ ...PLAIN, subject: "B" }, 0));
      assert.deepEqual(await store.get(PLAIN.id), PLAIN);
      assert.deepEqual(await store.list(), [PLAIN]);
    },
  },
  {
    name: "swap: S4-21 S4-16 another version writes only over that version, as the next one",
    async run({ store }) {
      await store.compareAndSwap(PLAIN, 0);
      const second = await store.compareAndSwap({ ...PLAIN, subject: "B" }, 1);
      assert.deepEqual(second, { ...PLAIN, subject: "B", version: 2 });
      for (const version of [1, 3, 99]) {
        const change = { ...second, subject: "C" };
        await refuses("concurrent_modification", () => store.compareAndSwap(change, version));
      }
      assert.deepEqual(await store.get(PLAIN.id), second);
    },
  },
  {
    name: "swap: S4-22 a version other than 0 on an unknown id is not_found and creates nothing",
    async run({ store }) {
      await refuses("not_found", () => store.compareAndSwap(PLAIN, 1));
      assert.deepEqual(await store.list(), []);
    },
  },
  {
    name: "swap: S4-23 a refused swap leaves everything as it was",
    async run({ store }) {
      const full = await store.compareAndSwap(FULL_TASK, 0);
      const plain = await store.compareAndSwap(PLAIN, 0);
      const other: Task = { ...PLAIN, id: full.id, subject: "other", description: "other" };
      await refuses("already_exists", () => store.compareAndSwap(other, 0));
      await refuses("concurrent_modification", () => store.compareAndSwap(other, 5));
      assert.deepEqual(await store.list(), [full, plain]);
    },
  },
  {
    name: "swap: S4-16 the version is counted by the store, whatever the task says",
    async run({ store }) {
      const inserted = await store.compareAndSwap({ ...PLAIN, version: 41 }, 0);
      assert.equal(inserted.version, 1);
      const next = await store.compareAndSwap({ ...inserted, version: 999 }, 1);
      assert.equal(next.version, 2);
      assert.equal((await store.get(PLAIN.id)).version, 2);
    },
  },
  {
    name: "swap: a version that is none is invalid_input",
    async run({ store }) {
      for (const version of [-1, 0.5, Number.NaN]) {
        await refuses("invalid_input", () => store.compareAndSwap(PLAIN, version));
      }
      assert.deepEqual(await store.list(), []);
    },
  },
  {
    name: "swap: S4-24 S4-04 of twenty swaps of one version, through two handles, exactly one is made",
    async run({ store, again }) {
      const other = await again();
      await store.compareAndSwap(PLAIN, 0);
      const results = await together(20, (n) =>
        (n % 2 === 0 ? store : other)
          .compareAndSwap({ ...PLAIN, subject: `by ${n}` }, 1)
          .catch((error: unknown) => error),
      );
      const won = results.filter((result) => !(result instanceof Error));
      assert.equal(won.length, 1);
      assert.deepEqual(await store.get(PLAIN.id), won[0]);
      assert.deepEqual(await other.get(PLAIN.id), won[0]);
    },
  },
  {
    name: "swap: S4-24 of twenty inserts of one id, through two handles, exactly one is made",
    async run({ store, again }) {
      const other = await again();
      const results = await together(20, (n) =>
        (n % 2 === 0 ? store : other)
          .compareAndSwap({ ...PLAIN, subject: `by ${n}` }, 0)
          .catch((error: unknown) => error),
      );
      assert.equal(results.filter((result) => !(result instanceof Error)).length, 1);
      assert.equal((await store.list()).length, 1);
    },
  },
  {
    name: "swap: S4-08 every field comes back as it was, in all statuses",
    async run({ store, again }) {
      const other = await again();
      for (const status of TASK_STATUSES) {
        const task = { ...FULL_TASK, id: `task-${status}`, status };
        assert.deepEqual(await store.compareAndSwap(task, 0), task);
        assert.deepEqual(await other.get(task.id), task);
      }
      const ids = (await other.list()).map(({ id }) => id);
      assert.deepEqual(
        ids,
        TASK_STATUSES.map((status) => `task-${status}`),
      );
    },
  },
  {
    name: "swap: a field that is left out is gone",
    async run({ store }) {
      await store.compareAndSwap({ ...FULL_TASK, id: PLAIN.id }, 0);
      await store.compareAndSwap(PLAIN, 1);
      assert.deepEqual(await store.get(PLAIN.id), { ...PLAIN, version: 2 });
    },
  },
  {
    name: "list: S4-25 all tasks, oldest first, also after older ones changed",
    async run({ store }) {
      assert.deepEqual(await store.list(), []);
      for (const n of [3, 1, 2]) await store.compareAndSwap({ ...PLAIN, id: `task-${n}` }, 0);
      await store.compareAndSwap({ ...PLAIN, id: "task-3", subject: "changed" }, 1);
      const ids = (await store.list()).map(({ id }) => id);
      assert.deepEqual(ids, ["task-3", "task-1", "task-2"]);
    },
  },
  {
    name: "copies: S4-27 changing what was handed in or out does not change the store",
    async run({ store }) {
      const blockedBy = ["task-a"];
      const given = { ...FULL_TASK, blockedBy };
      await store.compareAndSwap(given, 0);
      blockedBy.push("task-z");
      given.subject = "changed";
      const before = await store.get(FULL_TASK.id);
      for (const task of [await store.get(FULL_TASK.id), ...(await store.list())]) {
        const mine = task as unknown as { subject: string; blockedBy?: string[] };
        mine.subject = "changed";
        mine.blockedBy?.push("task-z");
      }
      assert.deepEqual(before.blockedBy, ["task-a"]);
      assert.deepEqual(await store.get(FULL_TASK.id), before);
    },
  },
  {
    name: "close: S4-26 may be called again",
    async run({ store }) {
      await store.compareAndSwap(PLAIN, 0);
      await store.close();
      await store.close();
    },
  },
];
