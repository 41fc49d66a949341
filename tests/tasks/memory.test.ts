import { expect, test } from "vitest";
import { createTaskList } from "../../src/tasks/create-task-list.ts";
import { memoryTaskStore } from "../../src/tasks/memory-task-store.ts";
import { runTaskCases } from "./task-stores.ts";

runTaskCases("memory", async () => ({ store: memoryTaskStore() }));

test("S4-54 the memory store needs nothing outside, and two of them share nothing", async () => {
  const one = createTaskList({ store: memoryTaskStore() });
  const two = createTaskList({ store: memoryTaskStore() });
  await one.add({ subject: "A task" });
  expect(await two.list()).toEqual([]);
});

test("S4-55 S4-36 a thousand parallel claims of a hundred tasks: one winner each, nothing unhandled", async () => {
  const tasks = createTaskList({ store: memoryTaskStore() });
  const added = await tasks.addAll(Array.from({ length: 100 }, (_, n) => ({ subject: `${n}` })));
  const claims = Array.from({ length: 10 }, (_, n) =>
    added.map(({ id }) => tasks.claim({ id, claimer: `worker-${n}` })),
  );
  const results = await Promise.allSettled(claims.flat());
  const won = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  expect(won.length).toBe(100);
  const byId = new Map(won.map((task) => [task.id, task]));
  expect(await tasks.list()).toEqual(added.map(({ id }) => byId.get(id)));
});
