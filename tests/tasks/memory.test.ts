import { expect, test } from "vitest";
import { createTaskList, memoryTaskStore } from "../../src/tasks/create-task-list.ts";
import { runTaskCases } from "./task-stores.ts";

runTaskCases("memory", async () => ({ store: memoryTaskStore() }));

test("two memory stores share nothing [S4-54]", async () => {
  const one = createTaskList({ store: memoryTaskStore() });
  const two = createTaskList({ store: memoryTaskStore() });
  await one.add({ subject: "A task" });
  expect(await two.list()).toEqual([]);
});

test("a thousand parallel claims of a hundred tasks: one winner each, nothing unhandled [S4-55 S4-36]", async () => {
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
