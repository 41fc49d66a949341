// A store from before decisions said who staged them: the gate's own are known again, and nobody else's.

import Sqlite from "better-sqlite3";
import pg from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { MIGRATIONS as POSTGRES } from "../../src/store/postgres/migrations/index.ts";
import { MIGRATIONS as SQLITE } from "../../src/store/sqlite/migrations/index.ts";
import { freshDatabase } from "../support/postgres-database.ts";

const OWN =
  '{"requester":"agent:one","chain":["agent:one"],"owner":"","messageId":"m","keys":[],"facts":{}}';
const CALLS = '{"calls":[{"tool":"a"}],"v":1}';

interface Old {
  readonly id: string;
  readonly state: string;
  readonly metadata: string;
  readonly raw: string;
  readonly asked?: number;
}
const ROWS: readonly Old[] = [
  { id: "cut-off", state: "pending_tech", metadata: OWN, raw: CALLS },
  { id: "unasked", state: "pending_ml", metadata: OWN, raw: CALLS },
  { id: "asked", state: "pending_ml", metadata: OWN, raw: CALLS, asked: 1 },
  { id: "approved", state: "approved", metadata: OWN, raw: CALLS, asked: 1 },
  { id: "facts-only", state: "pending_tech", metadata: '{"facts":{}}', raw: CALLS },
  { id: "opaque", state: "pending_tech", metadata: OWN, raw: "%PDF" },
];
const AFTER = [
  { id: "approved", origin: "port", unasked: null },
  { id: "asked", origin: "port", unasked: null },
  { id: "cut-off", origin: "port", unasked: 7 },
  { id: "facts-only", origin: null, unasked: null },
  { id: "opaque", origin: null, unasked: null },
  { id: "unasked", origin: "port", unasked: 7 },
];
const COLUMNS =
  "tenant, id, session_id, state, source_tool, raw, diff_metadata, asked, created_at, updated_at";
const cells = ({ id, state, raw, metadata, asked = 0 }: Old) =>
  ["acme", id, "s", state, "t", Buffer.from(raw), metadata, asked, 5, 7] as const;
const isNew = ({ name }: { readonly name: string }) => name === "origin";
const LOOK = "SELECT id, origin, unasked FROM decisions ORDER BY id";

test("SQLite marks the decisions of the gate, and looks for unasked ones by an index [B2] [SL6]", () => {
  const database = new Sqlite(":memory:");
  for (const one of SQLITE) if (!isNew(one)) database.exec(one.sql);
  const places = COLUMNS.split(",").map(() => "?");
  const insert = database.prepare(`INSERT INTO decisions (${COLUMNS}) VALUES (${places.join()})`);
  for (const row of ROWS) insert.run(...cells(row));
  for (const one of SQLITE) if (isNew(one)) database.exec(one.sql);
  expect(database.prepare(LOOK).all()).toEqual(AFTER);
  const query =
    "SELECT * FROM decisions WHERE tenant = ? AND unasked <= ? AND updated_at <= ? AND ord > ? ORDER BY ord LIMIT ?";
  const plan = database.prepare(`EXPLAIN QUERY PLAN ${query}`).all("acme", 9, 9, 0, 200);
  expect(JSON.stringify(plan)).toContain("decisions_unasked");
  database.close();
});

test("PostgreSQL marks the decisions of the gate [B2]", async () => {
  const { url, drop } = await freshDatabase(inject("pgUrl"));
  onTestFinished(drop);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  const run = (sql: string) => client.query(sql.replaceAll("$schema", "sallyport"));
  await run("CREATE SCHEMA IF NOT EXISTS sallyport; SET search_path TO sallyport, public");
  for (const one of POSTGRES) if (!isNew(one)) await run(one.sql);
  const places = COLUMNS.split(",").map((_, index) => `$${index + 1}`);
  for (const row of ROWS) {
    await client.query(`INSERT INTO decisions (${COLUMNS}) VALUES (${places.join()})`, [
      ...cells(row),
    ]);
  }
  for (const one of POSTGRES) if (isNew(one)) await run(one.sql);
  const { rows } = await client.query<{ id: string; origin: string; unasked: string | null }>(LOOK);
  const found = rows.map((row) => ({
    ...row,
    unasked: row.unasked === null ? null : Number(row.unasked),
  }));
  expect(found).toEqual(AFTER);
});
