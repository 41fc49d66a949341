import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import Database from "better-sqlite3";
import pg from "pg";
import { inject } from "vitest";
import { postgresDatabase } from "../../src/tools/builtin/postgres-database.ts";
import type { SqlDatabase, SqlTable } from "../../src/tools/builtin/sql-table.ts";

import { sqliteDatabase } from "../../src/tools/builtin/sqlite-database.ts";
import { assertNobodyConnected, endPool } from "./postgres-connections.ts";
import { type FreshDatabase, freshDatabase } from "./postgres-database.ts";

const ITEMS_SCHEMA = `CREATE TABLE items (
  id integer PRIMARY KEY, version integer NOT NULL, name text, price numeric, note text UNIQUE, secret text
)`;
export const ITEMS: SqlTable = {
  name: "items",
  key: ["id"],
  version: "version",
  columns: ["name", "price", "note"],
  writable: ["name", "price", "note"],
};

export interface SqlEngine {
  readonly database: SqlDatabase;
  /** Straight to the database, around the tools. */
  run(sql: string): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

/** An empty table again, with three rows in it. */
export async function resetItems({ run }: SqlEngine): Promise<void> {
  await run("DROP TABLE IF EXISTS items");
  await run(ITEMS_SCHEMA);
  await run(
    `INSERT INTO items VALUES (1, 1, 'one', 1.5, 'n1', 's'), (2, 7, 'two', 2, NULL, 's'), (3, 1, 'three', 3, 'n3', 's')`,
  );
}

export async function openSqlite(): Promise<SqlEngine> {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-sql-"));
  const handle = new Database(path.join(folder, "shadow.db"));
  return {
    database: sqliteDatabase({ name: "shadow", handle }),
    async run(sql) {
      const statement = handle.prepare(sql);
      if (statement.reader) return statement.all() as Record<string, unknown>[];
      statement.run();
      return [];
    },
    async close() {
      handle.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function openPostgres(): Promise<SqlEngine> {
  const fresh: FreshDatabase = await freshDatabase(inject("pgUrl"));
  const pool = new pg.Pool({ connectionString: fresh.url, max: 4 });
  return {
    database: postgresDatabase({ name: "shadow", pool }),
    run: async (sql) => (await pool.query(sql)).rows,
    async close() {
      await endPool(pool);
      // The pool says so before its connections have ended, and dropping the database would cut those off.
      await assertNobodyConnected(fresh.url);
      await fresh.drop();
    },
  };
}

export const SQL_ENGINES = [
  ["sqlite", openSqlite],
  ["postgres", openPostgres],
] as const;
