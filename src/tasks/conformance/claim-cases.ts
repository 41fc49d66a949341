import assert from "node:assert/strict";
import { isSallyportError } from "../../model/errors.ts";
import type { TaskId, TaskStatus } from "../../model/task.ts";
import { NOWHERE, refuses, START, together } from "../../store/conformance/samples.ts";
import type { TaskStore } from "../../store/tasks.ts";
import { toIso } from "../../util/clock.ts";
import type { TaskList } from "../task-list.ts";
import { plain, readingTogether, type TaskCase } from "./case.ts";

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
