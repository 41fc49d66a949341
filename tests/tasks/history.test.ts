import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Task } from "../../src/model/task.ts";
import { missingTask, type TaskStore } from "../../src/store/tasks.ts";
import { memoryTaskStore } from "../../src/tasks/create-task-list.ts";
import { markdownTaskStore } from "../../src/tasks/markdown-task-store.ts";
import { seededRandom } from "../../src/util/random.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { type Play, playOnStore } from "./history.ts";
import { checkLinearizable } from "./linearizability.ts";
import { taskModel } from "./task-model.ts";
import { openMarkdown } from "./task-stores.ts";

const FULL = process.env["SCALE"] === "full";
const SEED = process.env["SEED"] ?? "history";
const TIMEOUT = FULL ? 600_000 : 120_000;

function play(seed: string): Play {
  const random = seededRandom(seed);
  const pick = (most: number) => {
    const [a = 0, b = 0] = random.bytes(2);
    return (a * 256 + b) % most;
  };
  return { workers: 8, tasks: 4, calls: 40, leaseMs: 1_000, pick };
}

/** How many tasks have an impossible history, and how many calls succeeded. */
async function judge(open: () => Promise<TaskStore>, one: Play) {
  const stories = [...(await playOnStore(open, one)).values()];
  const yes = stories.flat().filter(({ output }) => output?.ok).length;
  const wrong = stories.filter((story) => !checkLinearizable(taskModel, story).linearizable);
  return { wrong: wrong.length, yes, calls: stories.flat().length };
}

test(`memory: the answers to eight workers on four tasks are linearizable (seed ${SEED}) [T34 G4 I11 I12 I13]`, {
  timeout: TIMEOUT,
}, async () => {
  for (let round = 0; round < (FULL ? 500 : 25); round += 1) {
    const store = slow(memoryTaskStore());
    const { wrong, yes } = await judge(async () => store, play(`${SEED} ${round}`));
    expect(wrong, `round ${round}`).toBe(0);
    expect(yes).toBeGreaterThan(10);
  }
});

test(`Markdown: the answers to eight workers on eight handles are linearizable (seed ${SEED}) [T34 G4 I11 I12 I13]`, {
  timeout: TIMEOUT,
}, async () => {
  for (let round = 0; round < (FULL ? 50 : 2); round += 1) {
    const { file, remove } = await openMarkdown();
    const open = async () => markdownTaskStore({ path: file, waitMs: 60_000 });
    const { wrong, yes } = await judge(open, play(`${SEED} ${round}`));
    expect(wrong, `round ${round}`).toBe(0);
    expect(yes).toBeGreaterThan(10);
    await remove?.();
  }
});

forEachStore("histories", (open) => {
  test(`the answers to eight workers on four tasks are linearizable (seed ${SEED}) [T34 G4 I11 I12 I13]`, {
    timeout: TIMEOUT,
  }, async () => {
    for (let round = 0; round < (FULL ? 50 : 2); round += 1) {
      const { store, clock, again } = await open();
      const other = (await again?.())?.store ?? store;
      let handles = 0;
      const next = async () => {
        handles += 1;
        return (handles % 2 === 0 ? store : other).tenant("acme").tasks;
      };
      const { wrong, yes } = await judge(next, { ...play(`${SEED} ${round}`), clock });
      expect(wrong, `round ${round}`).toBe(0);
      expect(yes).toBeGreaterThan(10);
    }
  });
});

/** Stores with a bug. If the checker did not find them, the tests above would prove nothing. */
const PLANTED: Readonly<Record<string, () => TaskStore>> = {
  "compares, then waits, then writes": () => broken({ compares: true }),
  "does not compare at all": () => broken({ compares: false }),
  "answers reads from a copy that is one write old": () => {
    const store = memoryTaskStore();
    const old = new Map<string, Task>();
    return {
      ...store,
      async compareAndSwap(task, version) {
        const before = version === 0 ? undefined : await store.get(task.id);
        const stored = await store.compareAndSwap(task, before?.version ?? 0);
        old.set(task.id, before ?? stored);
        return stored;
      },
      async get(id) {
        const task = old.get(id);
        if (task === undefined) throw missingTask(id);
        return task;
      },
    };
  },
  "forgets the fence": () => {
    const store = memoryTaskStore();
    const forget = ({ fence: _, ...task }: Task): Task => ({ ...task, fence: 1 });
    return {
      ...store,
      compareAndSwap: (task, version) => store.compareAndSwap(forget(task), version),
    };
  },
};

test.each(Object.keys(PLANTED))("a store that %s is found out", async (name) => {
  let found = 0;
  for (let round = 0; round < 10 && found === 0; round += 1) {
    const store = slow(PLANTED[name]?.() ?? memoryTaskStore());
    found += (await judge(async () => store, play(`${name} ${round}`))).wrong;
  }
  expect(found).toBeGreaterThan(0);
});

function broken({ compares }: { compares: boolean }): TaskStore {
  const store = memoryTaskStore();
  return {
    ...store,
    async compareAndSwap(task, version) {
      if (version === 0) return store.compareAndSwap(task, 0);
      const seen = await store.get(task.id);
      if (compares && seen.version !== version) return store.compareAndSwap(task, version);
      await setImmediate();
      return store.compareAndSwap(task, (await store.get(task.id)).version);
    },
  };
}

/** Lets others in before and after every operation, as a real store would. */
function slow(store: TaskStore): TaskStore {
  const around = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    await setImmediate();
    const result = await work();
    await setImmediate();
    return result;
  };
  return {
    get: (id) => around(() => store.get(id)),
    compareAndSwap: (task, version) => around(() => store.compareAndSwap(task, version)),
    list: () => around(() => store.list()),
    close: () => store.close(),
  };
}
