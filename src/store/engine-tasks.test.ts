import { expect, test } from "vitest";
import { createTaskList } from "../tasks/create-task-list.ts";
import { manualClock, systemClock } from "../util/clock.ts";
import { systemRandom } from "../util/random.ts";
import { engineTasks } from "./engine-tasks.ts";
import { memoryEngine } from "./memory/index.ts";
import { tenantEngine } from "./tenant-engine.ts";

/** Two handles; what `between` is set to happens once, after the first has looked and before it writes. */
async function world() {
  const engine = memoryEngine({ clock: systemClock, random: systemRandom });
  const own = tenantEngine(engine, "acme", (_, data) => data);
  const race: { between?: (() => Promise<unknown>) | undefined } = {};
  const late: typeof own = {
    ...own,
    async commit(change) {
      const { between } = race;
      race.between = undefined;
      await between?.();
      return own.commit(change);
    },
  };
  const now = () => engine.now();
  const tasks = createTaskList({ store: engineTasks(late, now) });
  const other = createTaskList({ store: engineTasks(own, now) });
  const [blocker, waiting] = await tasks.addAll([
    { subject: "blocker", key: "b" },
    { subject: "waiting", blockedBy: ["b"] },
  ]);
  const [b = "", w = ""] = [blocker?.id, waiting?.id];
  const completed = () => other.complete({ id: b, result: "done" });
  const next = async () =>
    (await other.claimBatch({ claimer: "bob", limit: 9 })).map(({ subject }) => subject);
  return { tasks, other, race, b, w, completed, next };
}

test("a task that is written while its last blocker is completed does not go on waiting", async () => {
  const { tasks, race, w, completed, next } = await world();
  race.between = completed;
  await tasks.link({ id: w, sessionId: "session-1" });
  expect(await next()).toEqual(["waiting"]);
});

test("a task that is added while its blocker is completed does not wait for it", async () => {
  const { tasks, race, b, completed, next } = await world();
  race.between = completed;
  const added = await tasks.add({ subject: "added", blockedBy: [b] });
  expect(added.version).toBe(1);
  expect(await next()).toEqual(["waiting", "added"]);
});

test("a blocker that is completed while somebody begins to wait for it frees that one too", async () => {
  const { tasks, other, race, b, next } = await world();
  race.between = () => other.add({ subject: "added", blockedBy: [b] });
  await tasks.complete({ id: b, result: "done" });
  expect(await next()).toEqual(["waiting", "added"]);
});

test("a task that is told to wait for another while that one is completed does not wait", async () => {
  const { tasks, other, race, b, w, next } = await world();
  const { id } = await other.add({ subject: "third" });
  race.between = () => other.complete({ id, result: "" });
  await tasks.block({ id: w, blockedBy: [id] });
  expect(await next()).toEqual(["blocker", "waiting"]);
  expect((await tasks.get(b)).blockedBy).toBe(undefined);
});

test("a task that no longer waits, while its blocker is completed, is ready once and counted right", async () => {
  const { tasks, race, w, completed, next } = await world();
  race.between = completed;
  await tasks.block({ id: w, blockedBy: [] });
  expect(await next()).toEqual(["waiting"]);
});

test("two that wait for each other, made so by hand, can both be completed", async () => {
  const { tasks, other, b, w } = await world();
  const store = tasks.store();
  const blocker = await store.get(b);
  await store.compareAndSwap({ ...blocker, blockedBy: [w] }, blocker.version);
  await tasks.complete({ id: b, result: "" });
  expect((await other.claimNext({ claimer: "bob" }))?.id).toBe(w);
  await tasks.complete({ id: w, result: "" });
});

test("rows that were read at different moments are read again, in a single task and in the list", async () => {
  const engine = memoryEngine({ clock: systemClock, random: systemRandom });
  const own = tenantEngine(engine, "acme", (_, data) => data);
  const now = () => engine.now();
  const other = createTaskList({ store: engineTasks(own, now) });
  let between: (() => Promise<unknown>) | undefined;
  const happens = async () => {
    const once = between;
    between = undefined;
    await once?.();
  };
  /** Another process writes after the queue was read and before the facts are. */
  const torn: typeof own = {
    ...own,
    async get(table, id) {
      if (table.name === "tasks") await happens();
      return own.get(table, id);
    },
    async find(table, query) {
      if (table.name === "tasks") await happens();
      return own.find(table, query);
    },
  };
  const tasks = createTaskList({ store: engineTasks(torn, now) });
  const { id } = await other.add({ subject: "A task" });
  const looks = [() => tasks.get(id), async () => (await tasks.list())[0]];
  for (const [index, look] of looks.entries()) {
    between = () => other.link({ id, decisionIds: [`dec-${index}`] });
    const seen = await look();
    expect([seen?.version, seen?.decisionIds?.length]).toEqual([index + 2, index + 1]);
  }
});

test("a lease that was over when it was found, and is a new claim when it is looked at, is left alone [T34]", async () => {
  const clock = manualClock(0);
  const engine = memoryEngine({ clock, random: systemRandom });
  const own = tenantEngine(engine, "acme", (_, data) => data);
  const now = () => engine.now();
  const other = createTaskList({ store: engineTasks(own, now) });
  let between: (() => Promise<unknown>) | undefined;
  const late: typeof own = {
    ...own,
    async find(table, query) {
      const rows = await own.find(table, query);
      const once = between;
      between = undefined;
      await once?.();
      return rows;
    },
  };
  const tasks = createTaskList({ store: engineTasks(late, now) });
  const { id } = await other.add({ subject: "A task" });
  await other.claimNext({ claimer: "alice", leaseMs: 1_000 });
  clock.advance(1_000);
  between = () => other.claimNext({ claimer: "bob", leaseMs: 1_000 });
  expect(await tasks.claimNext({ claimer: "carol", leaseMs: 1_000 })).toBe(undefined);
  expect((await other.get(id)).claimer).toBe("bob");
  between = () => other.claimNext({ claimer: "dora", leaseMs: 1_000 });
  clock.advance(1_000);
  expect(await tasks.sweep()).toEqual([]);
  expect((await other.get(id)).claimer).toBe("dora");
});
