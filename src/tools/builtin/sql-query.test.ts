import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  ITEMS,
  resetItems,
  SQL_ENGINES,
  type SqlEngine,
} from "../../../tests/support/sql-engines.ts";
import type { JsonObject } from "../../util/json.ts";
import { sampleCall } from "../define-tool.ts";
import { sqlQuery } from "./sql-query.ts";
import { stagingDatabase } from "./sql-table.ts";
import { sqlUpdateRow } from "./sql-update-row.ts";

describe.each(SQL_ENGINES)("%s", (dialect, open) => {
  let engine: SqlEngine;
  beforeAll(async () => {
    engine = await open();
  });
  beforeEach(() => resetItems(engine));
  afterAll(() => engine.close());

  const tables = [ITEMS];
  const staging = () => stagingDatabase(engine.database);
  const place = (n: number) => (dialect === "postgres" ? `$${n}` : "?");
  const query = (sql: string, values: JsonObject[string][] = []) =>
    sqlQuery({ database: engine.database }).execute(sampleCall({ sql, values }));
  const all = () => engine.run("SELECT * FROM items ORDER BY id");
  const update = (input: JsonObject, retryBudget = 0) =>
    sqlUpdateRow({ database: staging(), tables, retryBudget }).execute(
      sampleCall({ table: "items", key: { id: 1 }, version: 1, set: { name: "new" }, ...input }),
    );

  test("sql.query passes values as parameters and returns at most the row limit", async () => {
    const { data } = await query(
      `SELECT id, name, price FROM items WHERE id >= ${place(1)} ORDER BY id`,
      [2],
    );
    expect(data).toMatchObject({ more: false, rows: [{ id: 2, name: "two" }, { id: 3 }] });
    const few = sqlQuery({ database: engine.database, maxRows: 2 });
    const endless =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    expect((await few.execute(sampleCall({ sql: endless }))).data).toEqual({
      rows: [{ i: 1 }, { i: 2 }],
      more: true,
    });
    const wrong = await query("SELECT nothing FROM items");
    expect(wrong).toMatchObject({ isError: true, data: { refused: "unusable" } });
    expect(wrong.text).toContain("nothing");
  });

  test("sql.query cannot write, end its transaction, or run a second statement [T32]", async () => {
    const before = await all();
    const attempts = [
      "DELETE FROM items",
      "UPDATE items SET name = 'x'",
      "INSERT INTO items VALUES (9, 1, 'x', 1, 'x', 'x') RETURNING id",
      "DROP TABLE items",
      "CREATE TABLE t (a integer)",
      "SELECT 1; DELETE FROM items",
      "SELECT 1; COMMIT; DELETE FROM items",
      "COMMIT",
      "ROLLBACK",
      "BEGIN",
      "PRAGMA query_only = OFF",
      "PRAGMA user_version = 5",
      "PRAGMA query_only",
      "PRAGMA busy_timeout = 1",
      "PRAGMA locking_mode = EXCLUSIVE",
      "PRAGMA journal_mode = OFF",
      "ATTACH ':memory:' AS other",
      "VACUUM",
      "SET TRANSACTION READ WRITE",
      "/* SELECT */ DELETE FROM items",
      "-- SELECT\nDELETE FROM items",
      "WITH d AS (DELETE FROM items RETURNING id) SELECT * FROM d",
      "WITH d AS (SELECT 1) DELETE FROM items",
      "SELECT set_config('transaction_read_only', 'off', false)",
      "SELECT * INTO copy FROM items",
      "SELECT nextval('s')",
      "EXPLAIN ANALYZE DELETE FROM items",
      "COPY items TO PROGRAM 'true'",
      "DO $$ BEGIN DELETE FROM items; END $$",
      ";",
      "",
      "'",
    ];
    for (const sql of attempts) expect((await query(sql)).isError, sql).toBe(true);
    expect(await all()).toEqual(before);
    expect((await update({})).isError).toBeUndefined(); // The lock is off again.
  });
});
