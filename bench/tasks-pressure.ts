import pg from "pg";
import { postgresStore } from "../src/store/postgres/index.ts";
import type { TaskStore } from "../src/store/tasks.ts";
import { freshDatabase } from "../tests/support/postgres-database.ts";
import type { Result } from "./report.ts";
import { median, ratio } from "./rounds.ts";
import { postgresTaskFloors } from "./tasks-floor-postgres.ts";
import { type Churn, churn, fill } from "./tasks-work.ts";

const ROUNDS = 5;
const unit = "tasks/s";
const FEW = 2_000;
const MANY = 50_000;
const BATCH = { workers: 8, batch: 50, total: 4_000 } as const;
const SNAPSHOT_S = 30;

/** What slows other task queues down: a long backlog, and a snapshot that is held open elsewhere. */
export async function* pressureBenches(
  url: string,
  names: readonly string[],
): AsyncGenerator<Result> {
  if (names.includes("backlog")) yield* backlogBench(url);
  if (names.includes("batch")) yield* batchBench(url);
  if (names.includes("snapshot")) yield* snapshotBench(url);
}

/** The same work with few and with many tasks waiting; what was taken is put back before each round. */
async function* backlogBench(url: string): AsyncGenerator<Result> {
  const few = await opened(url);
  const many = await opened(url);
  await fill(few.tasks, FEW);
  await fill(many.tasks, MANY);
  const work = { workers: 32, total: 1_600 };
  const rates = { few: [] as number[], many: [] as number[] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const name of ["few", "many"] as const) {
      const { tasks } = { few, many }[name];
      const rate = await rateOf(tasks, work);
      if (round > 0) rates[name].push(rate);
      await fill(tasks, work.total);
    }
  }
  await few.close();
  await many.close();
  const value = median(rates.many);
  const against = `${FEW.toLocaleString("en-US")} waiting`;
  const compared = { ratio: ratio(rates.many, rates.few), goal: ">= 0.7" };
  yield { name: "postgres.tasks.backlog", value, unit, against, ...compared };
}

async function* batchBench(url: string): AsyncGenerator<Result> {
  const product = await opened(url);
  await fill(product.tasks, BATCH.total * (ROUNDS + 1));
  const floors = await postgresTaskFloors(product.url, BATCH.total * (ROUNDS + 1));
  const rates = { product: [] as number[], floor: [] as number[] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    const rate = await rateOf(product.tasks, BATCH);
    const floor = await timed(floors.group(BATCH.workers * BATCH.batch, BATCH.total));
    if (round === 0) continue;
    rates.product.push(rate);
    rates.floor.push(floor);
  }
  await floors.close();
  await product.close();
  const compared = { ratio: ratio(rates.product, rates.floor), goal: "5000 or >= 0.25" };
  const shown = { name: "postgres.tasks.batch", value: median(rates.product), unit };
  yield { ...shown, against: "group", ...compared };
}

/**
 * Two databases in turn, and in one of them another connection keeps a snapshot: nothing that is finished there can be
 * forgotten. What was taken is put back after each round.
 */
async function* snapshotBench(url: string): AsyncGenerator<Result> {
  const free = await opened(url);
  const held = await opened(url);
  const work = { workers: 32, total: 1_600 };
  for (const { tasks } of [free, held]) {
    await fill(tasks, 2 * FEW);
    await rateOf(tasks, work);
  }
  const holder = new pg.Client({ connectionString: held.url });
  await holder.connect();
  await holder.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  await holder.query("SELECT count(*) FROM sallyport.tasks");
  const rates = { free: [] as number[], held: [] as number[] };
  for (let seconds = 0; seconds < SNAPSHOT_S; ) {
    for (const name of ["free", "held"] as const) {
      const { tasks } = { free, held }[name];
      const rate = await rateOf(tasks, work);
      rates[name].push(rate);
      // Only what is done under the snapshot counts as time under it.
      if (name === "held") seconds += work.total / rate;
      await fill(tasks, work.total);
    }
  }
  await holder.query("ROLLBACK");
  await holder.end();
  await free.close();
  await held.close();
  // The last third is where the most lies about.
  const third = -Math.ceil(rates.held.length / 3);
  const late = { free: rates.free.slice(third), held: rates.held.slice(third) };
  const shown = { name: "postgres.tasks.snapshot", value: median(late.held), unit };
  const compared = { ratio: ratio(late.held, late.free), goal: ">= 0.7" };
  yield { ...shown, against: "no snapshot", ...compared };
}

async function rateOf(tasks: TaskStore, work: Churn): Promise<number> {
  return timed(() => churn(tasks, work));
}

async function timed(work: () => Promise<number>): Promise<number> {
  const began = performance.now();
  const done = await work();
  return (done * 1_000) / (performance.now() - began);
}

async function opened(
  url: string,
): Promise<{ tasks: TaskStore; url: string; close(): Promise<void> }> {
  const database = await freshDatabase(url);
  const pool = new pg.Pool({ connectionString: database.url, max: 8, pipeline: true });
  const store = await postgresStore({ pool });
  return {
    tasks: store.tenant("bench").tasks,
    url: database.url,
    async close() {
      await store.close();
      await pool.end();
      await database.drop();
    },
  };
}
