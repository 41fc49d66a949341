import { open, rename } from "node:fs/promises";
import path from "node:path";
import pg from "pg";
import { memoryStore } from "../src/store/memory/index.ts";
import { postgresStore } from "../src/store/postgres/index.ts";
import { sqliteStore } from "../src/store/sqlite/index.ts";
import type { TaskStore } from "../src/store/tasks.ts";
import { markdownTaskStore } from "../src/tasks/markdown-task-store.ts";
import { freshDatabase } from "../tests/support/postgres-database.ts";
import { startPostgres } from "../tests/support/postgres-server.ts";
import type { Result } from "./report.ts";
import { median, ratio, rounds, type Work } from "./rounds.ts";
import { scratch } from "./scratch.ts";
import { postgresTaskFloors } from "./tasks-floor-postgres.ts";
import { sqliteTaskFloors } from "./tasks-floor-sqlite.ts";
import { pressureBenches } from "./tasks-pressure.ts";
import { churn, fill } from "./tasks-work.ts";

const WORKERS = [1, 8, 32] as const;
const ROUNDS = 5;
const unit = "tasks/s";

/** Claim and complete, with so many workers in one process, on each store beside its floors. */
export async function* taskBenches(wanted: (name: string) => boolean): AsyncGenerator<Result> {
  for (const workers of WORKERS) {
    if (wanted(`memory.tasks.${workers}`)) yield* memoryBench(workers);
    if (wanted(`markdown.tasks.${workers}`)) yield* markdownBench(workers);
    if (wanted(`sqlite.tasks.${workers}`)) yield* sqliteBench(workers);
  }
  const some = WORKERS.filter((workers) => wanted(`postgres.tasks.${workers}`));
  const pressed = ["backlog", "batch", "snapshot"].filter((name) =>
    wanted(`postgres.tasks.${name}`),
  );
  if (some.length + pressed.length === 0) return;
  const server = await startPostgres({ durable: true });
  try {
    for (const workers of some) yield* postgresBench(server.url, workers);
    yield* pressureBenches(server.url, pressed);
  } finally {
    await server.stop();
  }
}

function product(store: TaskStore, workers: number, total: number): Work {
  return () => churn(store, { workers, total });
}

async function* memoryBench(workers: number): AsyncGenerator<Result> {
  const store = memoryStore().tenant("bench").tasks;
  const total = 200;
  await fill(store, total * (ROUNDS + 1));
  const rates = await rounds({ product: product(store, workers, total) }, ROUNDS);
  yield { name: `memory.tasks.${workers}`, value: median(rates.product), unit };
}

async function* markdownBench(workers: number): AsyncGenerator<Result> {
  await using folder = await scratch();
  const file = path.join(folder.dir, "tasks.md");
  const store = markdownTaskStore({ path: file, waitMs: 60_000 });
  const total = 32;
  await fill(store, total * (ROUNDS + 1));
  const raw = () => replaceFile(file, 2 * total);
  const rates = await rounds({ product: product(store, workers, total), raw }, ROUNDS);
  const name = `markdown.tasks.${workers}`;
  const shown = { name, value: median(rates.product), unit, against: "raw" };
  yield { ...shown, ratio: ratio(rates.product, rates.raw) };
}

/** The file as it is now, written anew and put in place, as often as the store has to. */
async function replaceFile(file: string, times: number): Promise<number> {
  const handle = await open(file);
  const text = await handle.readFile();
  await handle.close();
  for (let n = 0; n < times; n += 1) {
    const fresh = await open(`${file}.floor`, "w");
    await fresh.writeFile(text);
    await fresh.sync();
    await fresh.close();
    await rename(`${file}.floor`, `${file}.copy`);
  }
  return times / 2;
}

async function* sqliteBench(workers: number): AsyncGenerator<Result> {
  await using folder = await scratch();
  await using store = sqliteStore({ file: path.join(folder.dir, "product.db") });
  const { tasks } = store.tenant("bench");
  const total = workers === 1 ? 400 : 3_200;
  const backlog = total * (ROUNDS + 1);
  await fill(tasks, backlog);
  const floors = sqliteTaskFloors(path.join(folder.dir, "floor.db"), 2 * backlog);
  const contestants = {
    product: product(tasks, workers, total),
    raw: floors.raw(400),
    group: floors.group(workers, total),
  };
  const rates = await rounds(contestants, ROUNDS);
  floors.close();
  yield* beside(`sqlite.tasks.${workers}`, rates);
}

async function* postgresBench(url: string, workers: number): AsyncGenerator<Result> {
  const database = await freshDatabase(url);
  const pool = new pg.Pool({ connectionString: database.url, max: 8, pipeline: true });
  const store = await postgresStore({ pool });
  const { tasks } = store.tenant("bench");
  const total = workers === 1 ? 200 : 1_600;
  const backlog = total * (ROUNDS + 1);
  await fill(tasks, backlog);
  const floors = await postgresTaskFloors(database.url, 2 * backlog);
  const contestants = {
    product: product(tasks, workers, total),
    raw: floors.raw(workers, total),
    group: floors.group(workers, total),
  };
  const rates = await rounds(contestants, ROUNDS);
  await floors.close();
  await store.close();
  await pool.end();
  await database.drop();
  yield* beside(`postgres.tasks.${workers}`, rates);
}

function* beside(
  name: string,
  rates: Readonly<Record<"product" | "raw" | "group", number[]>>,
): Generator<Result> {
  for (const against of ["raw", "group"] as const) {
    const value = median(rates.product);
    yield { name, value, unit, against, ratio: ratio(rates.product, rates[against]) };
  }
}
