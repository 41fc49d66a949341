import path from "node:path";
import Sqlite from "better-sqlite3";
import pg from "pg";
import { postgresStore } from "../src/store/postgres/index.ts";
import { sqliteStore } from "../src/store/sqlite/index.ts";
import type { Store } from "../src/store/store.ts";
import { freshDatabase } from "../tests/support/postgres-database.ts";
import { startPostgres } from "../tests/support/postgres-server.ts";
import { DECISION } from "./floors/rows.ts";
import type { Result } from "./report.ts";
import { median, ratio, rounds, type Work } from "./rounds.ts";
import { scratch } from "./scratch.ts";

const FEW = 10_000;
const MANY = 1_000_000;
const PER_SESSION = 10;
const ROUNDS = 5;

/** Reading must not cost more because more is stored: the same reads beside each other on a small and on a large store. */
export async function* readBenches(wanted: (name: string) => boolean): AsyncGenerator<Result> {
  if (wanted("sqlite.read")) {
    await using folder = await scratch();
    const [few, many] = [FEW, MANY].map((count) => filledSqlite(folder.dir, count));
    if (few && many) yield* compare("sqlite", few, many);
    await few?.close();
    await many?.close();
  }
  if (wanted("postgres.read")) {
    const server = await startPostgres({ durable: true });
    try {
      const few = await filledPostgres(server.url, FEW);
      const many = await filledPostgres(server.url, MANY);
      yield* compare("postgres", few.store, many.store);
      await few.close();
      await many.close();
    } finally {
      await server.stop();
    }
  }
}

async function* compare(engine: string, few: Store, many: Store): AsyncGenerator<Result> {
  const works = { get: getOne, session: listSession };
  for (const [name, work] of Object.entries(works)) {
    const rates = await rounds({ few: work(few, FEW), many: work(many, MANY) }, ROUNDS);
    yield {
      name: `${engine}.read.${name}`,
      value: 1e6 / median(rates.many),
      unit: "µs",
      against: `${FEW.toLocaleString("en-US")} stored`,
      ratio: ratio(rates.few, rates.many),
      goal: "<= 1.5",
    };
  }
}

const READS = 2_000;

function getOne(store: Store, count: number): Work {
  const { decisions } = store.tenant("bench");
  return async () => {
    for (let i = 0; i < READS; i += 1) await decisions.get(idOf(spread(i, count)));
    return READS;
  };
}

function listSession(store: Store, count: number): Work {
  const { decisions } = store.tenant("bench");
  return async () => {
    for (let i = 0; i < READS; i += 1) {
      const found = await decisions.listBySession(`s-${spread(i, count / PER_SESSION)}`);
      if (found.length !== PER_SESSION) throw new Error(`expected ${PER_SESSION}`);
    }
    return READS;
  };
}

/** Visits the store far and wide, the same way each time. */
function spread(i: number, count: number): number {
  return (i * 7_919) % count;
}

const idOf = (n: number): string => `019a8b00-0000-7000-8000-${String(n).padStart(12, "0")}`;

function filledSqlite(dir: string, count: number): Store {
  const file = path.join(dir, `${count}.db`);
  const store = sqliteStore({ file });
  const db = new Sqlite(file);
  db.pragma("synchronous = OFF");
  db.prepare(
    `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${count})
INSERT INTO decisions (tenant, id, session_id, state, source_tool, raw, diff_metadata, asked, created_at, updated_at)
SELECT 'bench', printf('019a8b00-0000-7000-8000-%012d', i), 's-' || (i / ${PER_SESSION}), 'executed', ?, ?, ?, 0, i, i FROM n`,
  ).run(DECISION.tool, DECISION.raw, DECISION.metadata);
  db.close();
  return store;
}

async function filledPostgres(
  url: string,
  count: number,
): Promise<{ store: Store; close(): Promise<void> }> {
  const database = await freshDatabase(url);
  const pool = new pg.Pool({ connectionString: database.url, max: 4 });
  const store = await postgresStore({ pool });
  await pool.query({
    text: `INSERT INTO sallyport.decisions (tenant, id, session_id, state, source_tool, raw, diff_metadata, asked, created_at, updated_at)
SELECT 'bench', '019a8b00-0000-7000-8000-' || lpad(i::text, 12, '0'), 's-' || (i / ${PER_SESSION}), 'executed', $1, $2, $3, 0, i, i FROM generate_series(0, ${count} - 1) AS i`,
    values: [DECISION.tool, DECISION.raw, DECISION.metadata],
  });
  return {
    store,
    async close() {
      await store.close();
      await pool.end();
      await database.drop();
    },
  };
}
