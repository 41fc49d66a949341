import { setTimeout } from "node:timers/promises";
import pg from "pg";

/** Ends a pool, and fails when one of its connections is still in use. */
export async function endPool(pool: pg.Pool): Promise<void> {
  // A hint in flight (NOTIFY) may take a moment to come back.
  for (let tries = 0; tries < 50 && held(pool) > 0; tries += 1) await setTimeout(10);
  const left = held(pool);
  // Ending a pool waits for the connections that are out, for ever if need be.
  const ended = pool.end();
  if (left === 0) return ended;
  throw new Error(`the store left ${left} connection(s) open`);
}

function held(pool: pg.Pool): number {
  return pool.totalCount - pool.idleCount + pool.waitingCount;
}

/** The same seen from the server, which also knows of connections that no pool counts any more. */
export async function assertNobodyConnected(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const text =
      "SELECT count(*)::int AS left FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    for (let tries = 0; tries < 100; tries += 1) {
      const { rows } = await client.query<{ left: number }>(text);
      if (rows[0]?.left === 0) return;
      await setTimeout(10);
    }
    throw new Error("connections were left open on the server");
  } finally {
    await client.end();
  }
}
