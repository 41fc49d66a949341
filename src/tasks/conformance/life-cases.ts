import assert from "node:assert/strict";
import { isSallyportError } from "../../model/errors.ts";
import {
  TASK_STATUSES,
  type Task,
  type TaskId,
  type TaskStatus,
  taskToJson,
} from "../../model/task.ts";
import { NOWHERE, refuses, START, together } from "../../store/conformance/samples.ts";
import type { TaskStore } from "../../store/tasks.ts";
import { toIso } from "../../util/clock.ts";
import type { TaskList } from "../create-task-list.ts";
import { casesOf, fourOperations, readingTogether, type TaskCase } from "./store-cases.ts";

const SEVENTY_NINE = "ü".repeat(79);
const BAD_SUBJECTS: Readonly<Record<string, unknown>> = {
  "is empty": "",
  "is blank": " \t ",
  "has 81 characters": "x".repeat(81),
  "has 81 characters beyond the first plane": "👍".repeat(81),
  "has two lines": "one\ntwo",
  "has a line separator": "one\u2028two",
  "has a control character": "one\u001b[31m",
  "has half a character": "one\ud800",
  "is a number": 7,
  "is missing": undefined,
};

/** What a task is, and how it comes into the list. */
export const taskAddCases: readonly TaskCase[] = [
  ...casesOf({
    "add: returns the pending task with id, time, version 1 [S4-28 S4-30]": async ({
      store,
      tasks,
    }) => {
      const task = await tasks.add({ subject: "A task", description: "What to do" });
      assert.deepEqual(task, {
        id: task.id,
        subject: "A task",
        description: "What to do",
        status: "pending",
        createdAt: toIso(START),
        version: 1,
      });
      assert.ok(task.id.length > 0);
      assert.deepEqual(await store.get(task.id), task);
    },
    "add: ids of the same millisecond differ in their random part [S4-29]": async ({ tasks }) => {
      const ids = [];
      for (let n = 0; n < 20; n += 1) ids.push((await tasks.add({ subject: "A task" })).id);
      assert.equal(new Set(ids.map((id) => id.slice(-12))).size, 20);
    },
    "add: a taken id is already_exists and the first task stays [S4-29]": async ({ list }) => {
      const tasks = list({ ids: { next: () => "task-same" } });
      const first = await tasks.add({ subject: "first" });
      await refuses("already_exists", () => tasks.add({ subject: "second" }));
      assert.deepEqual(await tasks.list(), [first]);
    },
  }),
  ...[`${SEVENTY_NINE}x`, "👍".repeat(80), "x", "  spaces around  "].map(
    (subject, index): TaskCase => ({
      name: `add: a subject of 1 to 80 characters is kept as it is (${index + 1}) [S4-12]`,
      async run({ tasks }) {
        const { id } = await tasks.add({ subject });
        assert.equal((await tasks.get(id)).subject, subject);
      },
    }),
  ),
  ...Object.entries(BAD_SUBJECTS).map(
    ([what, subject]): TaskCase => ({
      name: `add: a subject that ${what} is rejected, and nothing is stored [S4-12 S4-13]`,
      async run({ tasks }) {
        await refuses("invalid_input", () => tasks.add({ subject: subject as string }));
        assert.deepEqual(await tasks.list(), []);
      },
    }),
  ),
  ...casesOf({
    "add: fields that are too long or invalid are rejected, nothing is stored": async ({
      tasks,
    }) => {
      const subject = "A task";
      await refuses("payload_too_large", () =>
        tasks.add({ subject, description: "x".repeat(100_001) }),
      );
      await refuses("invalid_input", () => tasks.add({ subject, description: "\ud800" }));
      await refuses("invalid_input", () => tasks.add({ subject, priority: 0.5 }));
      await refuses("invalid_input", () => tasks.add({ subject, role: "a\nb" }));
      await refuses("invalid_input", () => tasks.add({ subject, sessionId: "" }));
      assert.deepEqual(await tasks.list(), []);
    },
    "shape: JSON names are snake-case, empty fields omitted [S4-08 S4-09]": async ({
      tasks,
      clock,
    }) => {
      const { id } = await tasks.add({ subject: "A task" });
      const names = async () => Object.keys(taskToJson(await tasks.get(id)));
      const first = ["id", "subject", "description", "status", "created_at", "version"];
      assert.deepEqual(await names(), first);
      clock.advance(1_000);
      await tasks.claim({ id, claimer: "bob" });
      assert.deepEqual(
        (await names()).filter((name) => !first.includes(name)),
        ["claimed_by", "claimed_at", "fence"],
      );
      await tasks.fail({ id, reason: "no" });
      assert.ok((await names()).includes("fail_reason"));
      await tasks.reopen({ id });
      await tasks.complete({ id, result: "done" });
      const json = taskToJson(await tasks.get(id));
      assert.equal(json["result"], "done");
      assert.equal(json["completed_at"], toIso(START + 1_000));
      for (const name of ["claimed_by", "fail_reason"]) assert.ok(!(name in json), name);
    },
    "shape: a store accepts pending, claimed, completed, failed and no other status [S4-11]":
      async ({ store, tasks }) => {
        assert.deepEqual(TASK_STATUSES, ["pending", "claimed", "completed", "failed"]);
        const task = await tasks.add({ subject: "A task" });
        for (const status of ["in_progress", "Pending", "toString"]) {
          const invalid = { ...task, status: status as "pending" };
          await refuses("invalid_input", () => store.compareAndSwap(invalid, 1));
        }
        assert.deepEqual(await store.get(task.id), task);
      },
  }),
  ...["agent-1", "员工 4711", "svc/night@host: x", "- status: completed"].map(
    (claimer): TaskCase => ({
      name: `shape: a claimer may have any name: ${claimer} [S4-14]`,
      async run({ tasks }) {
        const { id } = await tasks.add({ subject: "A task" });
        await tasks.claim({ id, claimer });
        assert.equal((await tasks.get(id)).claimer, claimer);
      },
    }),
  ),
  ...[
    '{"status":"failed"}',
    "## heading\n- [x] box\n```\nfence",
    "<b>&amp;</b>\r\n\ttab ",
    "%s $1 \\n",
  ].map(
    (result, index): TaskCase => ({
      name: `shape: a result is plain text and is not interpreted (${index + 1}) [S4-15 S4-67]`,
      async run({ tasks }) {
        const { id } = await tasks.add({ subject: "A task", description: result });
        await tasks.complete({ id, result });
        const task = await tasks.get(id);
        assert.deepEqual(
          [task.description, task.result, task.status],
          [result, result, "completed"],
        );
      },
    }),
  ),
  ...casesOf({
    "shape: every change raises the version by exactly one [S4-16]": async ({ tasks }) => {
      const { id } = await tasks.add({ subject: "A task" });
      const versions = [
        await tasks.claim({ id, claimer: "bob", leaseMs: 1_000 }),
        await tasks.renew({ id, fence: 2, leaseMs: 1_000 }),
        await tasks.release({ id, fence: 2 }),
        await tasks.fail({ id, reason: "no" }),
        await tasks.reopen({ id }),
        await tasks.link({ id, sessionId: "session-1" }),
        await tasks.complete({ id, result: "" }),
      ].map(({ version }) => version);
      assert.deepEqual(versions, [2, 3, 4, 5, 6, 7, 8]);
    },
  }),
];

/** A fresh task, led to this status through the list's own calls. */
export async function taskIn(status: TaskStatus, tasks: TaskList): Promise<TaskId> {
  const { id } = await tasks.add({ subject: `A ${status} task` });
  if (status === "claimed") await tasks.claim({ id, claimer: "alice" });
  if (status === "completed") await tasks.complete({ id, result: "the first result" });
  if (status === "failed") await tasks.fail({ id, reason: "the first reason" });
  return id;
}

/** The row of docs/spec for a claim of a task in this status. */
const ROW = { claimed: "S4-35", completed: "S4-32", failed: "S4-48" } as const;

/** Who gets a task. */
export const taskClaimCases: readonly TaskCase[] = [
  ...casesOf({
    "claim: sets status, claimer, time and next version [S4-33 S4-31]": async ({
      tasks,
      clock,
    }) => {
      const task = await tasks.add({ subject: "A task" });
      clock.advance(70);
      const claimed = await tasks.claim({ id: task.id, claimer: "bob" });
      assert.deepEqual(claimed, {
        ...task,
        status: "claimed",
        claimer: "bob",
        claimedAt: toIso(START + 70),
        version: 2,
        fence: 2,
      });
      assert.deepEqual(await tasks.get(task.id), claimed);
    },
  }),
  ...(["claimed", "completed", "failed"] as const).map(
    (status): TaskCase => ({
      name: `claim: a ${status} task is not_claimable and unchanged [S4-31 ${ROW[status]}]`,
      async run({ tasks, clock }) {
        const id = await taskIn(status, tasks);
        const before = await tasks.get(id);
        clock.advance(3_600_000);
        const error = await refuses("not_claimable", () => tasks.claim({ id, claimer: "bob" }));
        assert.equal(error.details["status"], status);
        await refuses("not_claimable", () => tasks.claim({ id, claimer: "alice" }));
        assert.deepEqual(await tasks.get(id), before);
      },
    }),
  ),
  ...casesOf({
    "claim: an unknown id is not_found [S4-37]": async ({ tasks }) => {
      await refuses("not_found", () => tasks.claim({ id: NOWHERE, claimer: "bob" }));
      assert.deepEqual(await tasks.list(), []);
    },
    "claim: a claimer without a name is invalid_input": async ({ tasks }) => {
      const { id } = await tasks.add({ subject: "A task" });
      await refuses("invalid_input", () => tasks.claim({ id, claimer: "" }));
      assert.equal((await tasks.get(id)).status, "pending");
    },
    "claim: if two read before either writes, one wins, the other gets concurrent_modification [S4-34 S4-04]":
      async ({ store, list, tasks }) => {
        const { id } = await tasks.add({ subject: "A task" });
        const both = list({ store: readingTogether(store, 2) });
        const results = await Promise.allSettled([
          both.claim({ id, claimer: "alice" }),
          both.claim({ id, claimer: "bob" }),
        ]);
        const won = results.filter((result) => result.status === "fulfilled");
        const lost = results.filter((result) => result.status === "rejected");
        assert.deepEqual([won.length, lost.length], [1, 1]);
        assert.ok(isSallyportError(lost[0]?.reason, "concurrent_modification"));
        assert.deepEqual(await tasks.get(id), won[0]?.value);
      },
    "claim: a lost claim reads once and writes once, without a retry [S4-35]": async ({
      store,
      list,
      tasks,
    }) => {
      const { id } = await tasks.add({ subject: "A task" });
      const calls: string[] = [];
      const late: TaskStore = {
        ...fourOperations(store),
        async get(wanted) {
          calls.push("get");
          const task = await store.get(wanted);
          await tasks.claim({ id, claimer: "alice" });
          return task;
        },
        compareAndSwap(task, version) {
          calls.push("swap");
          return store.compareAndSwap(task, version);
        },
      };
      const claim = () => list({ store: late }).claim({ id, claimer: "bob" });
      await refuses("concurrent_modification", claim);
      assert.deepEqual(calls, ["get", "swap"]);
      assert.equal((await tasks.get(id)).claimer, "alice");
    },
    "claim: 8 workers on 2 handles: each of 16 tasks has one claimer, the one whose call succeeded [S4-36]":
      async ({ list, again, tasks }) => {
        const added = await tasks.addAll(
          Array.from({ length: 16 }, (_, n) => ({ subject: `Task ${n}` })),
        );
        const other = list({ store: await again() });
        const told = new Map<TaskId, string[]>();
        await together(8, async (n) => {
          const mine = n % 2 === 0 ? tasks : other;
          for (const { id } of added) {
            const claimed = await mine.claim({ id, claimer: `worker-${n}` }).catch((error) => {
              const lost =
                isSallyportError(error, "not_claimable") ||
                isSallyportError(error, "concurrent_modification");
              assert.ok(lost, String(error));
            });
            if (claimed) told.set(id, [...(told.get(id) ?? []), `worker-${n}`]);
          }
        });
        for (const task of await tasks.list()) {
          assert.deepEqual([task.status, task.version], ["claimed", 2]);
          assert.deepEqual(told.get(task.id), [task.claimer]);
        }
        assert.equal(told.size, added.length);
      },
  }),
];

/** Complete, fail, re-open. */
export const taskClosingCases: readonly TaskCase[] = [
  ...(["pending", "claimed"] as const).map(
    (status): TaskCase => ({
      name: `complete: from ${status}: result, time and the next version [S4-38 S4-39]`,
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
  ...casesOf({
    "complete: twice is already_completed, the first result stays [S4-40]": async ({ tasks }) => {
      const id = await taskIn("completed", tasks);
      const before = await tasks.get(id);
      await refuses("already_completed", () => tasks.complete({ id, result: "another" }));
      await refuses("already_completed", () => tasks.complete({ id, result: "the first result" }));
      assert.deepEqual(await tasks.get(id), before);
      assert.equal(before.result, "the first result");
    },
    "complete: anyone may complete a claim without a lease [S4-41]": async ({ list, tasks }) => {
      const id = await taskIn("claimed", tasks);
      const task = await list().complete({ id, result: "by the leader" });
      assert.deepEqual([task.status, task.claimer], ["completed", "alice"]);
    },
    "complete: a failed task is rejected and unchanged [S4-42]": async ({ tasks }) => {
      const id = await taskIn("failed", tasks);
      const before = await tasks.get(id);
      await refuses("illegal_transition", () => tasks.complete({ id, result: "done" }));
      assert.deepEqual(await tasks.get(id), before);
    },
    "complete: observers of any list are called once after the swap, not if it is rejected [S4-43 S4-44 S4-03]":
      async ({ store, list, tasks }) => {
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
    "complete: of two concurrent calls one succeeds, with one event [S4-44]": async ({
      list,
      tasks,
    }) => {
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
    "complete: a throwing observer stops neither the completion nor other observers [S4-44]":
      async ({ list }) => {
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
  }),
  ...(["pending", "claimed"] as const).map(
    (status): TaskCase => ({
      name: `fail: from ${status}: other processes can read the reason [S4-45 S4-47]`,
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
  ...casesOf({
    "fail: a completed task is already_completed and unchanged [S4-46]": async ({ tasks }) => {
      const id = await taskIn("completed", tasks);
      const before = await tasks.get(id);
      await refuses("already_completed", () => tasks.fail({ id, reason: "late" }));
      assert.deepEqual(await tasks.get(id), before);
    },
    "fail: a failed task is rejected and keeps its first reason [S4-47]": async ({ tasks }) => {
      const id = await taskIn("failed", tasks);
      const before = await tasks.get(id);
      await refuses("illegal_transition", () => tasks.fail({ id, reason: "another" }));
      assert.deepEqual(await tasks.get(id), before);
      assert.equal(before.failureReason, "the first reason");
    },
    "fail: unknown ids are not_found, for complete and reopen too": async ({ tasks }) => {
      await refuses("not_found", () => tasks.fail({ id: NOWHERE, reason: "x" }));
      await refuses("not_found", () => tasks.complete({ id: NOWHERE, result: "x" }));
      await refuses("not_found", () => tasks.reopen({ id: NOWHERE }));
    },
    "reopen: a failed task is pending without claimer, its failure in the history [S4-49 S4-50 S4-51]":
      async ({ tasks, clock }) => {
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
    "reopen: through the store: it can be claimed, and the reason moves to the history [S4-49 S4-51]":
      async ({ store, tasks }) => {
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
    "reopen: a task that is not failed is rejected": async ({ tasks }) => {
      for (const status of ["pending", "claimed"] as const) {
        const id = await taskIn(status, tasks);
        await refuses("illegal_transition", () => tasks.reopen({ id }));
      }
      const id = await taskIn("completed", tasks);
      await refuses("already_completed", () => tasks.reopen({ id }));
    },
    "reopen: after fifty failures it is rejected and all are kept": async ({ tasks }) => {
      const { id } = await tasks.add({ subject: "A task" });
      for (let n = 1; n <= 50; n += 1) {
        await tasks.fail({ id, reason: `reason ${n}` });
        if (n < 50) await tasks.reopen({ id });
      }
      await refuses("payload_too_large", () => tasks.reopen({ id }));
      const reasons = (await tasks.get(id)).history?.filter(({ what }) => what === "failed");
      assert.equal(new Set(reasons?.map(({ reason }) => reason)).size, 50);
    },
  }),
];
