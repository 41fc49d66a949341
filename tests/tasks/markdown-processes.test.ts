import { type ChildProcess, spawn } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createTaskList } from "../../src/tasks/create-task-list.ts";
import { parseTaskFile } from "../../src/tasks/markdown-format.ts";
import { markdownTaskStore } from "../../src/tasks/markdown-task-store.ts";
import type { CrashPoint } from "./markdown-child.ts";
import { freshFolder } from "./task-stores.ts";

const FULL = process.env["SCALE"] === "full";
const PROCESSES = FULL ? 8 : 3;
const TASKS = FULL ? 2_000 : 60;
const TIMEOUT = FULL ? 1_800_000 : 120_000;
const CHILD = path.join(import.meta.dirname, "markdown-child.ts");

/** A process and what it said: the tasks of which it knows that it has them. */
interface Worker {
  readonly name: string;
  readonly process: ChildProcess;
  readonly told: string[];
  /** Its exit code, undefined when it was killed. */
  readonly ended: Promise<number | undefined>;
}

test(`${PROCESSES} processes, ${TASKS} claims, killed and paused at random: no task is lost or claimed twice, and the file is always valid [S4-62 S4-24 S4-64 T34]`, {
  timeout: TIMEOUT,
}, async () => {
  const { folder, remove } = await freshFolder();
  const file = path.join(folder, "tasks.md");
  const tasks = createTaskList({ store: markdownTaskStore({ path: file }) });
  await addTasks(tasks);
  const workers: Worker[] = [];
  const counts = { killed: 0, paused: 0, reads: 0 };
  const kill = (worker: Worker) => {
    if (worker.process.kill("SIGKILL")) counts.killed += 1;
  };

  const seat = async (number: number) => {
    for (let life = 0; ; life += 1) {
      const worker = start(file, `p${number}-${life}`);
      workers.push(worker);
      // All but one die with their first claim, so that no run is without deaths.
      if (number > 0 && life === 0) worker.process.stdout?.once("data", () => kill(worker));
      const code = await worker.ended;
      if (code === 0) return;
      expect(code, "a worker ends by itself or is killed").toBe(undefined);
    }
  };
  const work = Promise.all(Array.from({ length: PROCESSES }, (_, number) => seat(number)));
  let working = true;
  const harass = async () => {
    while (working) {
      await sleep(Math.random() * (FULL ? 500 : 150));
      // Who has claimed nothing yet is spared: if all died at their start, nothing would ever be done.
      const alive = workers.filter(({ process: { exitCode, signalCode }, told }) => {
        return exitCode === null && signalCode === null && told.length > 0;
      });
      const victim = alive[Math.floor(Math.random() * alive.length)];
      if (victim === undefined) continue;
      if (Math.random() < 0.5) kill(victim);
      else {
        victim.process.kill("SIGSTOP");
        await sleep(Math.random() * 300);
        victim.process.kill("SIGCONT");
        counts.paused += 1;
      }
    }
  };
  const look = async () => {
    while (working) {
      expect(parseTaskFile(await readFile(file, "utf8")).tasks.size).toBe(TASKS);
      counts.reads += 1;
      await sleep(FULL ? 200 : 20);
    }
  };
  const ended = work.finally(() => {
    working = false;
  });
  await Promise.all([harass(), look(), ended]).finally(() => {
    for (const worker of workers) worker.process.kill("SIGKILL");
  });

  const told = workers.flatMap((worker) => worker.told.map((id) => ({ id, by: worker.name })));
  console.log(
    `markdown: ${told.length} of ${TASKS} claims told by ${workers.length} lives`,
    counts,
  );
  const stored = new Map((await tasks.list()).map((task) => [task.id, task]));
  expect(stored.size).toBe(TASKS);
  for (const task of stored.values()) expect([task.status, task.version]).toEqual(["claimed", 2]);
  expect(new Set(told.map(({ id }) => id)).size, "no task was claimed twice").toBe(told.length);
  for (const { id, by } of told) expect(stored.get(id)?.claimer).toBe(by);
  // A claim that was written but not reported belongs to a killed worker, at most one each.
  expect(TASKS - told.length).toBeLessThanOrEqual(counts.killed);
  expect(counts.killed).toBeGreaterThan(0);
  await remove();
});

const POINTS: readonly CrashPoint[] = ["opened", "half written", "written", "flushed", "renamed"];

test.each(POINTS)(
  "a writer killed when the new file was %s leaves a valid file and no lock [S4-64 S4-62]",
  async (point) => {
    const { folder, remove } = await freshFolder();
    const file = path.join(folder, "tasks.md");
    const tasks = createTaskList({ store: markdownTaskStore({ path: file }) });
    const { id } = await tasks.add({ subject: "One", description: "text ".repeat(2_000) });
    await tasks.add({ subject: "Two" });
    const before = await readFile(file, "utf8");

    const worker = start(file, "victim", point);
    expect(await worker.ended).toBe(undefined);
    expect(worker.told).toEqual([]);
    const after = await readFile(file, "utf8");
    if (point === "renamed") expect((await tasks.get(id)).claimer).toBe("victim");
    else expect(after).toBe(before);

    // It does not wait at all: the lock of a dead process would be store_busy.
    const hasty = createTaskList({ store: markdownTaskStore({ path: file, waitMs: 0 }) });
    await hasty.add({ subject: "Three" });
    expect(await tasks.list()).toHaveLength(3);
    expect((await readdir(folder)).toSorted()).toEqual(["tasks.md", "tasks.md.lock"]);
    await remove();
  },
);

async function addTasks(tasks: ReturnType<typeof createTaskList>): Promise<void> {
  for (let from = 0; from < TASKS; from += 500) {
    const size = Math.min(500, TASKS - from);
    await tasks.addAll(Array.from({ length: size }, (_, n) => ({ subject: `Task ${from + n}` })));
  }
}

function start(file: string, name: string, ...more: string[]): Worker {
  const options = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
  const child = spawn(process.execPath, [...options, CHILD, file, name, ...more], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const told: string[] = [];
  let rest = "";
  child.stdout?.on("data", (chunk) => {
    const lines = `${rest}${chunk}`.split("\n");
    rest = lines.pop() ?? "";
    told.push(...lines);
  });
  const ended = new Promise<number | undefined>((resolve) => {
    child.on("close", (code) => resolve(code ?? undefined));
  });
  return { name, process: child, told, ended };
}
