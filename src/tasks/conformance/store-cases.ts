import assert from "node:assert/strict";
import { isSallyportError, SallyportError } from "../../model/errors.ts";
import { TASK_STATUSES, type Task, type TaskStatus } from "../../model/task.ts";
import type { StoreCase } from "../../store/conformance/case.ts";
import { NOWHERE, refuses, START, together } from "../../store/conformance/samples.ts";
import type { TaskStore } from "../../store/tasks.ts";
import { type ManualClock, manualClock } from "../../util/clock.ts";
import { createTaskList, type TaskList, type TaskListOptions } from "../create-task-list.ts";

/** What an author of a store hands in: a fresh, empty store for each case. */
export interface OpenTaskStore {
  readonly store: TaskStore;
  /** For stores with a clock of their own: the one it tells the time by, standing at `START`. */
  readonly clock?: ManualClock;
  /** A second handle on the same tasks, as another process would have. Without it the first one is used twice. */
  readonly again?: () => Promise<TaskStore>;
  /** Called after the case, when the store was closed. */
  readonly remove?: () => Promise<void>;
}

/** What a case works with. */
export interface TaskHarness {
  readonly store: TaskStore;
  /** Over that store and clock. */
  readonly tasks: TaskList;
  /** Stands at `START` until the case moves it. */
  readonly clock: ManualClock;
  /** Another task list, over this store or another one. */
  list(options?: Partial<TaskListOptions>): TaskList;
  again(): Promise<TaskStore>;
  close(): Promise<void>;
}

/** One promise of the contract. It throws an AssertionError when the promise is broken. */
export type TaskCase = Omit<StoreCase<TaskHarness>, "needs">;

/** Cases by their names. */
export function casesOf(all: Readonly<Record<string, TaskCase["run"]>>): readonly TaskCase[] {
  return Object.entries(all).map(([name, run]) => ({ name, run }));
}

export async function taskHarness(open: () => Promise<OpenTaskStore>): Promise<TaskHarness> {
  const { store, again, remove, clock = manualClock(START) } = await open();
  const handles = [store];
  const list = (options: Partial<TaskListOptions> = {}) =>
    createTaskList({ store, clock, ...options });
  return {
    store,
    clock,
    list,
    tasks: list(),
    async again() {
      if (again === undefined) return store;
      const handle = await again();
      handles.push(handle);
      return handle;
    },
    async close() {
      for (const handle of handles) await handle.close();
      await remove?.();
    },
  };
}

/** A task with every field, for stores that must give back all of them. */
export const FULL_TASK: Task = {
  id: "task-full",
  subject: "Prüfe die Anmeldung 登录",
  description: "First line\n\n  third line, indented",
  status: "claimed",
  claimer: "员工 4711",
  result: "a result",
  failureReason: "a reason",
  createdAt: "2026-11-15T06:00:00.000Z",
  claimedAt: "2026-11-15T06:00:01.234Z",
  completedAt: "2026-11-15T06:00:02.000Z",
  version: 1,
  priority: -3,
  role: "writer",
  blockedBy: ["task-a", "task-b"],
  leaseUntil: "2026-11-15T07:00:00.000Z",
  fence: 7,
  sessionId: "session-1",
  decisionIds: ["dec-1", "dec-2"],
  delegationId: "del-1",
  history: [
    { at: "2026-11-15T05:00:00.000Z", what: "failed", by: "bob", reason: "no\nluck", fence: 2 },
    { at: "2026-11-15T05:30:00.000Z", what: "reopened" },
  ],
};

/** A store in front of a store, whose readers wait for each other: all have read before the first one writes. */
export function readingTogether(store: TaskStore, readers: number): TaskStore {
  let waiting = 0;
  const { promise: all, resolve } = Promise.withResolvers<void>();
  return {
    ...fourOperations(store),
    async get(id) {
      const task = await store.get(id);
      waiting += 1;
      if (waiting >= readers) resolve();
      await all;
      return task;
    },
  };
}

/** The four operations of a store and nothing else. */
export function fourOperations(store: TaskStore): TaskStore {
  return {
    get: (id) => store.get(id),
    compareAndSwap: (task, version, cause) => store.compareAndSwap(task, version, cause),
    list: () => store.list(),
    close: () => store.close(),
  };
}

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
  ...casesOf({
    "get: an unknown id is not_found [S4-19]": async ({ store }) => {
      await refuses("not_found", () => store.get(NOWHERE));
      await store.compareAndSwap(PLAIN, 0);
      await refuses("not_found", () => store.get(NOWHERE));
    },
    "swap: version 0 inserts an absent task as version 1 [S4-20 S4-30]": async ({ store }) => {
      assert.deepEqual(await store.compareAndSwap(PLAIN, 0), PLAIN);
      await refuses("already_exists", () => store.compareAndSwap({ ...PLAIN, subject: "B" }, 0));
      assert.deepEqual(await store.get(PLAIN.id), PLAIN);
      assert.deepEqual(await store.list(), [PLAIN]);
    },
    "swap: version n replaces only version n, by n + 1 [S4-21 S4-16]": async ({ store }) => {
      await store.compareAndSwap(PLAIN, 0);
      const second = await store.compareAndSwap({ ...PLAIN, subject: "B" }, 1);
      assert.deepEqual(second, { ...PLAIN, subject: "B", version: 2 });
      for (const version of [1, 3, 99]) {
        const change = { ...second, subject: "C" };
        await refuses("concurrent_modification", () => store.compareAndSwap(change, version));
      }
      assert.deepEqual(await store.get(PLAIN.id), second);
    },
    "swap: version n of an unknown id is not_found and creates nothing [S4-22]": async ({
      store,
    }) => {
      await refuses("not_found", () => store.compareAndSwap(PLAIN, 1));
      assert.deepEqual(await store.list(), []);
    },
    "swap: a rejected swap changes nothing [S4-23]": async ({ store }) => {
      const full = await store.compareAndSwap(FULL_TASK, 0);
      const plain = await store.compareAndSwap(PLAIN, 0);
      const other: Task = { ...PLAIN, id: full.id, subject: "other", description: "other" };
      await refuses("already_exists", () => store.compareAndSwap(other, 0));
      await refuses("concurrent_modification", () => store.compareAndSwap(other, 5));
      assert.deepEqual(await store.list(), [full, plain]);
    },
    "swap: the store counts the version, not the task [S4-16]": async ({ store }) => {
      const inserted = await store.compareAndSwap({ ...PLAIN, version: 41 }, 0);
      assert.equal(inserted.version, 1);
      const next = await store.compareAndSwap({ ...inserted, version: 999 }, 1);
      assert.equal(next.version, 2);
      assert.equal((await store.get(PLAIN.id)).version, 2);
    },
    "swap: an invalid version is invalid_input": async ({ store }) => {
      for (const version of [-1, 0.5, Number.NaN]) {
        await refuses("invalid_input", () => store.compareAndSwap(PLAIN, version));
      }
      assert.deepEqual(await store.list(), []);
    },
    "swap: of twenty concurrent swaps through two handles exactly one succeeds [S4-24 S4-04]":
      async ({ store, again }) => {
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
    "swap: of twenty concurrent inserts of one id exactly one succeeds [S4-24]": async ({
      store,
      again,
    }) => {
      const other = await again();
      const results = await together(20, (n) =>
        (n % 2 === 0 ? store : other)
          .compareAndSwap({ ...PLAIN, subject: `by ${n}` }, 0)
          .catch((error: unknown) => error),
      );
      assert.equal(results.filter((result) => !(result instanceof Error)).length, 1);
      assert.equal((await store.list()).length, 1);
    },
    "swap: every field is returned unchanged, in all statuses [S4-08]": async ({
      store,
      again,
    }) => {
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
    "swap: an omitted field is removed": async ({ store }) => {
      await store.compareAndSwap({ ...FULL_TASK, id: PLAIN.id }, 0);
      await store.compareAndSwap(PLAIN, 1);
      assert.deepEqual(await store.get(PLAIN.id), { ...PLAIN, version: 2 });
    },
    "list: all tasks, oldest first, also after older ones changed [S4-25]": async ({ store }) => {
      assert.deepEqual(await store.list(), []);
      for (const n of [3, 1, 2]) await store.compareAndSwap({ ...PLAIN, id: `task-${n}` }, 0);
      await store.compareAndSwap({ ...PLAIN, id: "task-3", subject: "changed" }, 1);
      const ids = (await store.list()).map(({ id }) => id);
      assert.deepEqual(ids, ["task-3", "task-1", "task-2"]);
    },
    "copies: the store keeps its own copy of every task [S4-27]": async ({ store }) => {
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
    "close: may be called again [S4-26]": async ({ store }) => {
      await store.compareAndSwap(PLAIN, 0);
      await store.close();
      await store.close();
    },
  }),
];

/** What is the task list's and what is the store's. */
export const taskLayerCases: readonly TaskCase[] = [
  ...casesOf({
    "layers: a store has no rules and swaps what the list rejects [S4-01]": async ({
      store,
      tasks,
    }) => {
      const { id } = await tasks.add({ subject: "A task" });
      const done = await tasks.complete({ id, result: "done" });
      await refuses("not_claimable", () => tasks.claim({ id, claimer: "bob" }));
      const { status } = await store.compareAndSwap({ ...done, status: "pending" }, done.version);
      assert.equal(status, "pending");
      assert.equal((await tasks.claim({ id, claimer: "bob" })).status, "claimed");
    },
    "layers: the task list needs only get, compareAndSwap, list and close [S4-02 S4-70]": async ({
      store,
      list,
    }) => {
      const tasks = list({ store: fourOperations(store) });
      const added = await tasks.addAll([{ subject: "one" }, { subject: "two" }]);
      await tasks.claimNext({ claimer: "bob" });
      await tasks.complete({ id: added[0]?.id ?? "", result: "done" });
      await tasks.fail({ id: added[1]?.id ?? "", reason: "no" });
      await tasks.reopen({ id: added[1]?.id ?? "" });
      const statuses = (await tasks.list()).map(({ status }) => status);
      assert.deepEqual(statuses, ["completed", "pending"]);
    },
    "layers: pages list each task once, in order, by status, while others are added [L6]": async ({
      tasks,
    }) => {
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
    "layers: two lists over one store see each other's changes [S4-03]": async ({
      tasks,
      list,
    }) => {
      const other = list();
      const { id } = await tasks.add({ subject: "A task" });
      assert.equal((await other.claim({ id, claimer: "bob" })).claimer, "bob");
      assert.equal((await tasks.get(id)).claimer, "bob");
      await tasks.complete({ id, result: "done" });
      assert.equal((await other.get(id)).result, "done");
    },
    "layers: the list exposes its store, and closes it [S4-05]": async ({ store, list }) => {
      let closed = 0;
      const counting: TaskStore = {
        ...fourOperations(store),
        async close() {
          closed += 1;
        },
      };
      const tasks = list({ store: counting });
      assert.equal(tasks.store(), counting);
      await tasks.close();
      assert.equal(closed, 1);
    },
    "layers: a call throws what the store throws [S4-06]": async ({ store, list, tasks }) => {
      const { id } = await tasks.add({ subject: "A task" });
      const broken = new Error("the disk is gone");
      const fail = async () => Promise.reject(broken);
      const reading = list({ store: { ...fourOperations(store), get: fail, list: fail } });
      const writing = list({ store: { ...fourOperations(store), compareAndSwap: fail } });
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
    "layers: any agent may add, list, claim, complete, fail [S4-07]": async ({ tasks }) => {
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
    "errors: five distinct codes, recognised after wrapping [S4-17]": async ({ store, tasks }) => {
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
    "errors: concurrent_modification advises a reread, after which the change succeeds [S4-18]":
      async ({ store, tasks }) => {
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
    "events: every change passes its event and actor to the store, for the audit log": async ({
      store,
      list,
      clock,
    }) => {
      const causes: string[] = [];
      const tasks = list({
        store: {
          ...fourOperations(store),
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
    "reads: get and list return what the store has [S4-52]": async ({ store, tasks }) => {
      const one = await tasks.add({ subject: "one" });
      await tasks.add({ subject: "two" });
      assert.deepEqual(await tasks.get(one.id), await store.get(one.id));
      assert.deepEqual(await tasks.list(), await store.list());
    },
    "reads: findByStatus filters the list; there is no create, update, delete or assign [S4-53]":
      async ({ tasks }) => {
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
  }),
];
