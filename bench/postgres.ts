import pg from "pg";
import { postgresStore } from "../src/store/postgres/index.ts";
import { freshDatabase } from "../tests/support/postgres-database.ts";
import { startPostgres } from "../tests/support/postgres-server.ts";
import { cycles } from "./cycle.ts";
import { postgresFloors } from "./floors/postgres.ts";
import type { Result } from "./report.ts";
import { median, ratio, rounds } from "./rounds.ts";

const ROUNDS = 5;
const CONNECTIONS = 16;
const unit = "cycles/s";

export async function* postgresBenches(wanted: (name: string) => boolean): AsyncGenerator<Result> {
  const all = [1, 64].filter((sessions) => wanted(`postgres.cycle.${sessions}`));
  if (all.length === 0) return;
  const server = await startPostgres({ durable: true });
  try {
    for (const sessions of all) yield* cycleBench(server.url, sessions);
  } finally {
    await server.stop();
  }
}

async function* cycleBench(url: string, sessions: number): AsyncGenerator<Result> {
  const database = await freshDatabase(url);
  const pool = new pg.Pool({ connectionString: database.url, max: 8, pipeline: true });
  const store = await postgresStore({ pool });
  const floors = await postgresFloors(database.url);
  const total = sessions === 1 ? 200 : 3_200;
  const rates = await rounds(
    {
      product: cycles(store, sessions, total),
      raw: floors.raw(Math.min(sessions, CONNECTIONS), sessions === 1 ? 200 : 1_600),
      "raw+entry": floors.rawWithEntry(
        Math.min(sessions, CONNECTIONS),
        sessions === 1 ? 200 : 1_600,
      ),
      group: floors.group(sessions, total),
    },
    ROUNDS,
  );
  await floors.close();
  await store.close();
  await pool.end();
  await database.drop();
  const name = `postgres.cycle.${sessions}`;
  const goals: { [floor: string]: string } = sessions === 64 ? { group: ">= 0.5" } : {};
  for (const against of ["raw", "raw+entry", "group"] as const) {
    const shown = { name, value: median(rates.product), unit, against };
    yield { ...shown, ratio: ratio(rates.product, rates[against]), goal: goals[against] ?? "" };
  }
}
