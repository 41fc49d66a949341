import pg from "pg";
import { inject, onTestFinished } from "vitest";
import type { Engine } from "../../src/store/engine.ts";
import type { PgClient, PgPool, PgQuery } from "../../src/store/postgres/connection.ts";
import { postgresEngine } from "../../src/store/postgres/index.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { endPool } from "./postgres-connections.ts";
import { freshDatabase } from "./postgres-database.ts";

const PATIENCE_MS = 2_000;
export const SCHEMA = "sallyport";

export interface OpenedEngine {
  readonly url: string;
  readonly pool: pg.Pool;
  /** Every connection that the pool has made. */
  readonly clients: readonly pg.PoolClient[];
  readonly engine: Engine;
}

interface OpenedHow {
  readonly patienceMs?: number;
  readonly watch?: (pool: pg.Pool) => PgPool;
  /** `never` for what only the general path does, such as its COMMIT. */
  readonly hot?: "auto" | "never";
}

/** An engine in a database of its own; everything is closed when the test is over. */
export async function openEngine(over: OpenedHow = {}): Promise<OpenedEngine> {
  const database = await freshDatabase(inject("pgUrl"));
  onTestFinished(() => database.drop());
  return { url: database.url, ...(await engineAt(database.url, over)) };
}

/** Another engine over a database that is there. */
export async function engineAt(
  url: string,
  {
    patienceMs = PATIENCE_MS,
    watch = (pool: pg.Pool): PgPool => pool as unknown as PgPool,
    hot = "auto",
  }: OpenedHow = {},
): Promise<Omit<OpenedEngine, "url">> {
  const pool = new pg.Pool({ connectionString: url, max: 8, pipeline: true });
  const clients: pg.PoolClient[] = [];
  pool.on("error", () => {}).on("connect", (client) => clients.push(client));
  onTestFinished(() => endPool(pool));
  const parts = { schema: SCHEMA, random: systemRandom, timers: systemTimers, patienceMs, hot };
  const engine = await postgresEngine({ pool: watch(pool), ...parts });
  onTestFinished(() => engine.close());
  return { pool, clients, engine };
}

/** A pool that tells of every query, before it is asked, and may answer it in its own way. */
export function watchedPool(
  pool: pg.Pool,
  onQuery: (query: PgQuery, ask: () => Promise<unknown>) => Promise<unknown> | undefined,
): PgPool {
  const watched = (client: pg.PoolClient): PgClient => ({
    query<R>(query: PgQuery): Promise<{ rows: R[] }> {
      const ask = () => client.query(query as pg.QueryConfig);
      return (onQuery(query, ask) ?? ask()) as Promise<never>;
    },
    release: (destroy) => client.release(destroy),
    on: (event: "error" | "notification", listener: (error: Error) => void) =>
      client.on(event as "error", listener),
    off: (event, listener) => client.off(event, listener),
  });
  return {
    connect: async () => watched(await pool.connect()),
    query: (query) => pool.query(query as pg.QueryConfig) as Promise<never>,
    on: (event, listener) => pool.on(event, listener),
  };
}
