// What an approved call leaves in the store, measured like bench/peers does: the data on disk, with the log written back.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import Sqlite from "better-sqlite3";
import pg from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { yes } from "../../bench/yes.ts";
import { createGate } from "../../src/gate/create-gate.ts";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import type { Store } from "../../src/store/store.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { decisionIdOf, PERSON } from "../support/port-world.ts";
import { freshDatabase } from "../support/postgres-database.ts";

/** The most that one approved call may leave behind. */
const LIMITS = { sqlite: 4_500, postgres: 7_500 };
const CALLS = 600;
const CALLERS = 16;

test("an approved call leaves no more in a SQLite store than its limit", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-bytes-"));
  const file = path.join(folder, "data.db");
  const store = sqliteStore({ file });
  onTestFinished(async () => {
    await store.close();
    rmSync(folder, { recursive: true });
  });
  const perCall = await grown(store, async () => {
    const database = new Sqlite(file);
    database.pragma("wal_checkpoint(TRUNCATE)");
    const [used, free, size] = (["page_count", "freelist_count", "page_size"] as const).map(
      (name) => Number(database.pragma(name, { simple: true })),
    ) as [number, number, number];
    database.close();
    return (used - free) * size;
  });
  expect(perCall).toBeLessThanOrEqual(LIMITS.sqlite);
});

test("an approved call leaves no more in a PostgreSQL store than its limit", async () => {
  const database = await freshDatabase(inject("pgUrl"));
  const connectionString = database.url;
  const pool = new pg.Pool({ connectionString, max: 6, pipeline: true } as pg.PoolConfig);
  const store = await postgresStore({ pool });
  onTestFinished(async () => {
    await store.close();
    await pool.end();
    await database.drop();
  });
  const perCall = await grown(store, async () => {
    await pool.query("VACUUM");
    const { rows } = await pool.query("SELECT pg_database_size(current_database()) AS bytes");
    return Number(rows[0].bytes);
  });
  expect(perCall).toBeLessThanOrEqual(LIMITS.postgres);
});

/** Bytes per approved call. The first calls fill pages that every store has. */
async function grown(store: Store, bytesIn: () => Promise<number>): Promise<number> {
  const refund = defineTool({
    name: "billing.refund",
    description: "Pays an invoice back.",
    input: {
      type: "object",
      properties: { invoice: { type: "string" }, cents: { type: "integer" } },
      required: ["invoice", "cents"],
      additionalProperties: false,
    },
    safety: { effect: "external" },
    dryRun: () => "would pay back 12900 cents",
    execute: () => "paid back",
  });
  const validators = { tech: yes("schema"), business: yes("limits") };
  const gate = createGate({ store, tools: [refund], validators });
  let calls = 0;
  const run = async (count: number) => {
    const end = calls + count;
    const caller = async () => {
      while (calls < end) {
        calls += 1;
        const session = gate.sessions.open({ agent: "agent:peers" });
        const input = { invoice: "INV-2041", cents: 12_900 };
        const call = { callId: `c-${calls}`, tool: refund.name, input };
        const id = decisionIdOf(await session.call(call));
        const { hash } = await gate.interactions.get(id);
        await gate.interactions.approve(id, { hash, by: PERSON });
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
  };
  await run(60);
  const before = await bytesIn();
  await run(CALLS);
  const perCall = ((await bytesIn()) - before) / CALLS;
  console.log(`${store.name}: ${Math.round(perCall)} bytes per approved call`);
  return perCall;
}
