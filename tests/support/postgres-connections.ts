import { setTimeout } from "node:timers/promises";
import type pg from "pg";

/** Fails when somebody still holds a connection of the pool. A hint in flight (NOTIFY) may take a moment to come back. */
export async function assertNoConnections(pool: pg.Pool): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    if (held(pool) === 0) return;
    await setTimeout(10);
  }
  throw new Error(`the store left ${held(pool)} connection(s) open`);
}

function held(pool: pg.Pool): number {
  return pool.totalCount - pool.idleCount + pool.waitingCount;
}
