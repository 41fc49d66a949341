import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTaskList } from "../tasks/create-task-list.ts";
import { systemClock } from "../util/clock.ts";
import { systemRandom } from "../util/random.ts";
import type { Step } from "./engine.ts";
import { engineTasks } from "./engine-tasks.ts";
import { memoryEngine } from "./memory/index.ts";
import { tenantEngine } from "./tenant-engine.ts";

/** Two handles on one list; on the first, every search for the next task takes long enough to be called slow. */
function slowWorld() {
  const engine = memoryEngine({ clock: systemClock, random: systemRandom });
  const own = tenantEngine(engine, "acme", (_, data) => data);
  const takes: (Step & { op: "take" })[] = [];
  const slow: typeof own = {
    ...own,
    async commit(change) {
      const [step] = change.steps;
      if (step?.op === "take") {
        takes.push(step);
        await sleep(25);
      }
      return own.commit(change);
    },
  };
  const now = () => engine.now();
  const tasks = createTaskList({ store: engineTasks(slow, now) });
  const other = createTaskList({ store: engineTasks(own, now) });
  const lastBegan = () => takes.at(-1)?.where["ord"];
  return { tasks, other, lastBegan };
}

test("while searches are slow they go on where the last one ended, and still nothing is lost or handed out twice", async () => {
  const { tasks, other, lastBegan } = slowWorld();
  await tasks.addAll(Array.from({ length: 11 }, (_, n) => ({ subject: `${n}` })));
  const claim = () => tasks.claimNext({ claimer: "bob", leaseMs: 60_000 });
  const got: (string | undefined)[] = [];
  const first = await claim();
  got.push(first?.subject);
  for (let n = 1; n < 8; n += 1) got.push((await claim())?.subject);
  expect(lastBegan(), "not yet").toBe(undefined);
  got.push((await claim())?.subject);
  expect(lastBegan()).toEqual({ atLeast: 8 });
  await other.release({ id: first?.id ?? "", fence: first?.fence ?? 0 });
  for (let task = await claim(); task !== undefined; task = await claim()) got.push(task.subject);
  const all = Array.from({ length: 11 }, (_, n) => `${n}`);
  expect(got.toSorted()).toEqual([...all, "0"].toSorted());
});

test("what the same process frees or adds with a higher priority is next at once, however slow the searches", async () => {
  const { tasks, lastBegan } = slowWorld();
  await tasks.addAll(Array.from({ length: 14 }, (_, n) => ({ subject: `${n}` })));
  const claim = () => tasks.claimNext({ claimer: "bob", leaseMs: 60_000 });
  const first = await claim();
  for (let n = 1; n < 9; n += 1) await claim();
  expect(lastBegan()).toBeDefined();
  await tasks.release({ id: first?.id ?? "", fence: first?.fence ?? 0 });
  expect((await claim())?.subject).toBe("0");
  await tasks.add({ subject: "urgent", priority: 1 });
  expect((await claim())?.subject).toBe("urgent");
});
