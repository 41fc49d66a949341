import assert from "node:assert/strict";
import { isSallyportError } from "../../model/errors.ts";
import { TASK_STATUSES, type TaskId, type TaskStatus, taskToJson } from "../../model/task.ts";
import { NOWHERE, refuses, START, together } from "../../store/conformance/samples.ts";
import type { TaskStore } from "../../store/tasks.ts";
import { toIso } from "../../util/clock.ts";
import type { TaskList } from "../create-task-list.ts";
import { plain, readingTogether, type TaskCase } from "./case.ts";

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
  {
    name: "add: S4-28 S4-30 a pending task comes back whole, with id, time and version 1",
    async run({ store, tasks }) {
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
  },
  {
    name: "add: S4-29 ids of the same moment differ by chance",
    async run({ tasks }) {
      const ids = [];
      for (let n = 0; n < 20; n += 1) ids.push((await tasks.add({ subject: "A task" })).id);
      assert.equal(new Set(ids.map((id) => id.slice(-12))).size, 20);
    },
  },
  {
    name: "add: S4-29 an id that is taken is already_exists, and the first task stays",
    async run({ list }) {
      const tasks = list({ ids: { next: () => "task-same" } });
      const first = await tasks.add({ subject: "first" });
      await refuses("already_exists", () => tasks.add({ subject: "second" }));
      assert.deepEqual(await tasks.list(), [first]);
    },
  },
  ...[`${SEVENTY_NINE}x`, "👍".repeat(80), "x", "  spaces around  "].map(
    (subject, index): TaskCase => ({
      name: `add: S4-12 a subject of 1 to 80 characters is kept as it is (${index + 1})`,
      async run({ tasks }) {
        const { id } = await tasks.add({ subject });
        assert.equal((await tasks.get(id)).subject, subject);
      },
    }),
  ),
  ...Object.entries(BAD_SUBJECTS).map(
    ([what, subject]): TaskCase => ({
      name: `add: S4-12 S4-13 a subject that ${what} is refused, and nothing is stored`,
      async run({ tasks }) {
        await refuses("invalid_input", () => tasks.add({ subject: subject as string }));
        assert.deepEqual(await tasks.list(), []);
      },
    }),
  ),
  {
    name: "add: what is too long or no text is refused, and nothing is stored",
    async run({ tasks }) {
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
  },
  {
    name: "shape: S4-08 S4-09 the JSON names are snake-case, and empty fields are left out",
    async run({ tasks, clock }) {
      const { id } = await tasks.add({ subject: "A task" });
      const names = async () => Object.keys(taskToJson(await tasks.get(id)));
      const first = ["id", "subject", "description", "status", "created_at", "version"];
      assert.deepEqual(await names(), first);
      clock.advance(1_000);
      await tasks.claim({ id, claimer: "bob" });
      assert.deepEqual(
        (await names()).filter((name) => !first.includes(name)),
        ["claimer", "claimed_at", "fence"],
      );
      await tasks.fail({ id, reason: "no" });
      assert.ok((await names()).includes("failure_reason"));
      await tasks.reopen({ id });
      await tasks.complete({ id, result: "done" });
      const json = taskToJson(await tasks.get(id));
      assert.equal(json["result"], "done");
      assert.equal(json["completed_at"], toIso(START + 1_000));
      for (const name of ["claimer", "failure_reason"]) assert.ok(!(name in json), name);
    },
  },
  {
    name: "shape: S4-11 the statuses are pending, claimed, completed and failed; a store takes no other",
    async run({ store, tasks }) {
      assert.deepEqual(TASK_STATUSES, ["pending", "claimed", "completed", "failed"]);
      const task = await tasks.add({ subject: "A task" });
      for (const status of ["in_progress", "Pending", "toString"]) {
        const odd = { ...task, status: status as "pending" };
        await refuses("invalid_input", () => store.compareAndSwap(odd, 1));
      }
      assert.deepEqual(await store.get(task.id), task);
    },
  },
  ...["agent-1", "员工 4711", "svc/night@host: x", "- status: completed"].map(
    (claimer): TaskCase => ({
      name: `shape: S4-14 a claimer is a free name: ${claimer}`,
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
      name: `shape: S4-15 S4-67 a result is plain text and is not interpreted (${index + 1})`,
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
  {
    name: "shape: S4-16 every change raises the version by exactly one",
    async run({ tasks }) {
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
  },
];

/** A fresh task, led to this status through the list's own calls. */
export async function taskIn(status: TaskStatus, tasks: TaskList): Promise<TaskId> {
  const { id } = await tasks.add({ subject: `A ${status} task` });
  if (status === "claimed") await tasks.claim({ id, claimer: "alice" });
  if (status === "completed") await tasks.complete({ id, result: "the first result" });
  if (status === "failed") await tasks.fail({ id, reason: "the first reason" });
  return id;
}

/** Who gets a task. */
export const taskClaimCases: readonly TaskCase[] = [
  {
    name: "claim: S4-33 S4-31 a pending task gets status, claimer, time and the next version",
    async run({ tasks, clock }) {
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
  },
  ...(["claimed", "completed", "failed"] as const).map(
    (status): TaskCase => ({
      name: `claim: S4-31 ${{ claimed: "S4-35", completed: "S4-32", failed: "S4-48" }[status]} a ${status} task is not_claimable and stays as it is`,
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
  {
    name: "claim: S4-37 an unknown id is not_found",
    async run({ tasks }) {
      await refuses("not_found", () => tasks.claim({ id: NOWHERE, claimer: "bob" }));
      assert.deepEqual(await tasks.list(), []);
    },
  },
  {
    name: "claim: a claimer without a name is invalid_input",
    async run({ tasks }) {
      const { id } = await tasks.add({ subject: "A task" });
      await refuses("invalid_input", () => tasks.claim({ id, claimer: "" }));
      assert.equal((await tasks.get(id)).status, "pending");
    },
  },
  {
    name: "claim: S4-34 S4-04 of two that read before either writes, one wins and the other gets concurrent_modification",
    async run({ store, list, tasks }) {
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
  },
  {
    name: "claim: S4-35 a lost claim reads once and writes once: it does not retry into another result",
    async run({ store, list, tasks }) {
      const { id } = await tasks.add({ subject: "A task" });
      const calls: string[] = [];
      const late: TaskStore = {
        ...plain(store),
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
  },
  {
    name: "claim: S4-36 eight workers, sixteen tasks, two handles: every task has one claimer, and it is the one who was told so",
    async run({ list, again, tasks }) {
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
  },
];
