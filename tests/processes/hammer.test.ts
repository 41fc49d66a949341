import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { expect, inject, test } from "vitest";
import { verifyStore } from "../../src/audit/verify.ts";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import type { Store } from "../../src/store/store.ts";
import type { HammerReport } from "../support/hammer-child.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { rebuildDecisions } from "../support/rebuild.ts";

const SECONDS = process.env["SCALE"] === "full" ? 30 : 3;
/** The store's own, unless told otherwise. */
const PATIENCE_MS = 10_000;
/** A write that got its turn in time may still wait for a processor. */
const SLOW_MACHINE_MS = 5_000;
const TIMEOUT = SECONDS * 1_000 + 60_000;

test(
  "two processes on one SQLite file: nothing lost, nothing twice, one chain, and no write waits longer than the store's patience [R26] [I17] [I20] [SL8]",
  async () => {
    const dir = await mkdtemp(path.join(tmpdir(), "sallyport-hammer-"));
    const file = path.join(dir, "store.db");
    await sqliteStore({ file }).close();
    const reports = await hammer("sqlite", file, 2);
    // A write that waits longer is refused with store_busy, which ends the process with an error.
    const waits = reports.map(({ tookMs }) => tookMs.at(-1) ?? Number.POSITIVE_INFINITY);
    console.log(`p99 ms: ${reports.map(({ tookMs }) => tookMs[Math.floor(0.99 * tookMs.length)])}`);
    console.log(`longest ms: ${waits}`);
    expect(Math.max(...waits)).toBeLessThan(PATIENCE_MS + SLOW_MACHINE_MS);
    await using store = sqliteStore({ file });
    await check(store, reports);
    await rm(dir, { recursive: true });
  },
  TIMEOUT,
);

test(
  "four processes on one PostgreSQL: nothing lost, nothing twice, one chain [R26 I17 I20]",
  async () => {
    const database = await freshDatabase(inject("pgUrl"));
    const reports = await hammer("postgres", database.url, 4);
    const pool = new pg.Pool({ connectionString: database.url, max: 3 });
    const store = await postgresStore({ pool });
    await check(store, reports);
    await store.close();
    await pool.end();
    await database.drop();
  },
  TIMEOUT,
);

async function hammer(kind: string, place: string, processes: number): Promise<HammerReport[]> {
  const names = Array.from({ length: processes }, (_, n) => `p${n}`);
  return Promise.all(names.map((name) => child([kind, place, String(SECONDS), name])));
}

function child(args: string[]): Promise<HammerReport> {
  const script = path.join(import.meta.dirname, "../support/hammer-child.ts");
  const options = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
  const process_ = spawn(process.execPath, [...options, script, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  let errors = "";
  process_.stdout.on("data", (chunk) => (out += chunk));
  process_.stderr.on("data", (chunk) => (errors += chunk));
  return new Promise((resolve, reject) => {
    process_.on("close", (code) => {
      if (code === 0) resolve(JSON.parse(out));
      else reject(new Error(`${args[3]} ended with ${code}: ${errors}`));
    });
  });
}

async function check(store: Store, reports: readonly HammerReport[]): Promise<void> {
  const acknowledged = reports.flatMap(({ moves }) => moves.map(([id, to]) => `${id} ${to}`));
  const lostRaces = reports.reduce((sum, report) => sum + report.lostRaces, 0);
  console.log(
    `${store.name}: ${acknowledged.length} moves by ${reports.length} processes, ${lostRaces} lost races`,
  );
  // A run in which nothing happened proves nothing.
  expect(acknowledged.length).toBeGreaterThan(200);
  expect(lostRaces).toBeGreaterThan(0);

  const trail = await rebuildDecisions(store.tenant("acme").audit);
  const told = [...trail].flatMap(([id, { states }]) => states.map((to) => `${id} ${to}`));
  expect(new Set(told).size).toBe(told.length);
  expect(told.toSorted()).toEqual(acknowledged.toSorted());

  for (const [id, { states, updatedAt }] of trail) {
    const stored = await store.tenant("acme").decisions.get(id);
    expect([stored.state, stored.updatedAt]).toEqual([states.at(-1), updatedAt]);
  }
  const report = await verifyStore(store, {});
  expect(report.problems).toEqual([]);
  expect(report.entries).toBe(told.length);
}
