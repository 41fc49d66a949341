// A store from before rules were proposed: its rules go on holding, with nothing lost.

import Sqlite from "better-sqlite3";
import pg from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { MIGRATIONS as POSTGRES } from "../../src/store/postgres/migrations/index.ts";
import { MIGRATIONS as SQLITE } from "../../src/store/sqlite/migrations/index.ts";
import { freshDatabase } from "../support/postgres-database.ts";

const RULE = {
  tenant: "acme",
  id: "rule-1",
  tool: "billing.refund",
  definition_hash: "d",
  pattern: "{}",
  working_directory: "",
  reason: '"small"',
  status: "active",
  made_by: "person:ada",
  ended_by: "",
  end_reason: '""',
  expires_at: 7,
  version: 1,
  created_at: 5,
  updated_at: 5,
};
const COLUMNS = Object.keys(RULE).join(", ");
const AFTER = { ...RULE, confirmed_by: "", uses: 0 };
const PROPOSE = "UPDATE standing_rules SET status = 'proposed'";
const before = <One extends { readonly version: number }>(all: readonly One[]) =>
  all.filter(({ version }) => version < 9);
const newer = <One extends { readonly version: number }>(all: readonly One[]) =>
  all.filter(({ version }) => version >= 9);

test("T41 a SQLite store with rules is brought to proposals without losing one", () => {
  const database = new Sqlite(":memory:");
  for (const { sql } of before(SQLITE)) database.exec(sql);
  const places = Object.keys(RULE).map(() => "?");
  database
    .prepare(`INSERT INTO standing_rules (${COLUMNS}) VALUES (${places.join()})`)
    .run(...Object.values(RULE));
  expect(() => database.exec(PROPOSE)).toThrow(/CHECK/);
  for (const { sql } of newer(SQLITE)) database.exec(sql);
  expect(database.prepare("SELECT * FROM standing_rules").all()).toEqual([{ ord: 1, ...AFTER }]);
  database.exec(PROPOSE);
  expect(() => database.exec("UPDATE standing_rules SET status = 'odd'")).toThrow(/CHECK/);
  database.close();
});

test("T41 a PostgreSQL store with rules is brought to proposals without losing one", async () => {
  const { url, drop } = await freshDatabase(inject("pgUrl"));
  onTestFinished(drop);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  const run = (sql: string) => client.query(sql.replaceAll("$schema", "sallyport"));
  await run("CREATE SCHEMA IF NOT EXISTS sallyport; SET search_path TO sallyport, public");
  for (const { sql } of before(POSTGRES)) await run(sql);
  const places = Object.keys(RULE).map((_, index) => `$${index + 1}`);
  await client.query(
    `INSERT INTO standing_rules (${COLUMNS}) VALUES (${places.join()})`,
    Object.values(RULE),
  );
  await expect(run(PROPOSE)).rejects.toThrow(/check/);
  for (const { sql } of newer(POSTGRES)) await run(sql);
  const { rows } = await client.query("SELECT * FROM standing_rules");
  // PostgreSQL gives its large numbers as texts.
  const [row] = rows.map(({ ord, ...rest }) => rest);
  expect(row).toEqual({
    ...AFTER,
    expires_at: "7",
    version: "1",
    created_at: "5",
    updated_at: "5",
    uses: "0",
  });
  await run(PROPOSE);
});
