import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTaskList } from "../tasks/create-task-list.ts";
import { systemClock } from "../util/clock.ts";
import { systemRandom } from "../util/random.ts";
import type { Step } from "./engine.ts";
import { engineTasks } from "./engine-tasks.ts";
import { memoryEngine } from "./memory/index.ts";
import { LowWater } from "./task-claims.ts";
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

const rows = (...places: readonly (readonly [number, number])[]) =>
  places.map(([priority, ord]) => ({ priority, ord }));
const marked = { tookMs: 1, whole: false };
const from = (priority: number, ord: number) => ({ priority, ord: { atLeast: ord } });

/** Eight slow searches from the start, the last one ending here. */
function slowly(water: LowWater, now: number, ...places: readonly (readonly [number, number])[]) {
  for (let n = 0; n < 8; n += 1) {
    water.learn("a", rows(...places), { now, tookMs: 50, whole: true });
  }
}

test("while looking from the start is quick, or slow only now and then, every search begins there", () => {
  const water = new LowWater();
  expect(water.conditions("a", 0)).toEqual({});
  for (let n = 1; n < 40; n += 1) {
    water.learn("a", rows([0, 7]), { now: n, tookMs: n % 8 === 0 ? 1 : 50, whole: true });
    expect(water.conditions("a", n)).toEqual({});
  }
});

test("when it is slow for good, the next ones begin where it ended, for ten times as long as it took", () => {
  const water = new LowWater();
  slowly(water, 100, [0, 5], [0, 7]);
  expect(water.conditions("a", 101)).toEqual(from(0, 7));
  expect(water.conditions("b", 101), "for the same roles only").toEqual({});
  water.learn("a", rows([0, 9]), { now: 110, ...marked });
  expect(water.conditions("a", 599)).toEqual(from(0, 9));
  expect(water.conditions("a", 600), "one looks from the start").toEqual({});
  expect(water.conditions("a", 601), "the others need not").toEqual(from(0, 9));
  water.learn("a", rows([0, 3]), { now: 610, tookMs: 1, whole: true });
  expect(water.conditions("a", 611), "it was quick again").toEqual({});
});

test("a mark moves on to lower priorities and later tasks, and not back by an answer that came late", () => {
  const water = new LowWater();
  slowly(water, 0, [5, 90]);
  water.learn("a", rows([0, 3]), { now: 1, ...marked });
  water.learn("a", rows([5, 95]), { now: 2, ...marked });
  expect(water.conditions("a", 3)).toEqual(from(0, 3));
});

test("what was found from the start is the truth, also when it lies before the mark", () => {
  const water = new LowWater();
  slowly(water, 0, [0, 90]);
  water.learn("a", rows([0, 4]), { now: 500, tookMs: 50, whole: true });
  expect(water.conditions("a", 501)).toEqual(from(0, 4));
});

test("a new task of a higher priority, something given back, and an empty list end the mark", () => {
  const water = new LowWater();
  slowly(water, 0, [0, 7]);
  water.added(0);
  water.added(-1);
  expect(water.conditions("a", 1)).toEqual(from(0, 7));
  water.added(1);
  expect(water.conditions("a", 1)).toEqual({});
  slowly(water, 0, [0, 7]);
  water.forget();
  expect(water.conditions("a", 1)).toEqual({});
  slowly(water, 0, [0, 7]);
  water.learn("a", [], { now: 1, tookMs: 50, whole: true });
  expect(water.conditions("a", 2)).toEqual({});
});
