import Database from "better-sqlite3";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { type FreshDatabase, freshDatabase } from "../../../tests/support/postgres-database.ts";
import type { JsonObject } from "../../util/json.ts";
import { makeUndo } from "../make-undo.ts";
import { sampleCall } from "../sample-call.ts";
import type { ToolResult } from "../tool.ts";
import type { UndoRecord } from "../undo.ts";
import { postgresDatabase } from "./postgres-database.ts";
import type { SqlDatabase } from "./sql-database.ts";
import { sqlDryRun } from "./sql-dry-run.ts";
import { sqlQuery } from "./sql-query.ts";
import type { SqlTable } from "./sql-table.ts";
import { sqlRestoreRow, sqlUpdateRow } from "./sql-update-row.ts";
import { sqliteDatabase } from "./sqlite-database.ts";
import { stagingDatabase } from "./staging-database.ts";

const SCHEMA = `CREATE TABLE items (
  id integer PRIMARY KEY, version integer NOT NULL, name text, price numeric, note text UNIQUE, secret text
)`;
const ITEMS: SqlTable = {
  name: "items",
  key: ["id"],
  version: "version",
  columns: ["name", "price", "note"],
  writable: ["name", "price", "note"],
};

interface Engine {
  readonly database: SqlDatabase;
  /** Straight to the database, around the tools. */
  run(sql: string): Promise<Record<string, unknown>[]>;
  close(): Promise<void>;
}

async function openSqlite(): Promise<Engine> {
  const handle = new Database(":memory:");
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
    },
  };
}

async function openPostgres(): Promise<Engine> {
  const fresh: FreshDatabase = await freshDatabase(inject("pgUrl"));
  const pool = new pg.Pool({ connectionString: fresh.url, max: 4 });
  return {
    database: postgresDatabase({ name: "shadow", pool }),
    run: async (sql) => (await pool.query(sql)).rows,
    async close() {
      await pool.end();
      await fresh.drop();
    },
  };
}

describe.each([
  ["sqlite", openSqlite],
  ["postgres", openPostgres],
] as const)("%s", (dialect, open) => {
  let engine: Engine;
  const tables = [ITEMS];
  const staging = () => stagingDatabase(engine.database);
  const place = (n: number) => (dialect === "postgres" ? `$${n}` : "?");

  beforeAll(async () => {
    engine = await open();
    await engine.run(SCHEMA);
  });
  afterAll(() => engine.close());
  beforeEach(async () => {
    await engine.run("DELETE FROM items");
    await engine.run(
      `INSERT INTO items VALUES (1, 1, 'one', 1.5, 'n1', 's'), (2, 7, 'two', 2, NULL, 's'), (3, 1, 'three', 3, 'n3', 's')`,
    );
  });

  const query = (sql: string, values: JsonObject[string][] = []) =>
    sqlQuery({ database: engine.database }).execute(sampleCall({ sql, values }));
  const update = (input: JsonObject, retryBudget = 0) =>
    sqlUpdateRow({ database: staging(), tables, retryBudget }).execute(
      sampleCall({ table: "items", key: { id: 1 }, version: 1, set: { name: "new" }, ...input }),
    );
  const dryRun = (input: JsonObject) =>
    sqlDryRun({ database: staging(), tables }).execute(sampleCall({ table: "items", ...input }));
  const all = () => engine.run("SELECT * FROM items ORDER BY id");
  const where = (column: string, is: string, value: JsonObject[string]) => [{ column, is, value }];

  async function undoOf(result: ToolResult): Promise<UndoRecord> {
    const tool = sqlUpdateRow({ database: staging(), tables });
    return (await makeUndo(tool, sampleCall({}), result)).undo as UndoRecord;
  }
  const restore = (undo: UndoRecord) =>
    sqlRestoreRow({ database: staging(), tables }).execute(sampleCall(undo.input));

  test("sql.query reads with values as parameters, and no more rows than it may", async () => {
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

  test("T32 sql.query cannot write, end its transaction, or run a second statement", async () => {
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

  test("I-14 one guarded UPDATE changes the row and raises the version itself", async () => {
    const result = await update({ set: { name: "new", note: null } });
    expect(result.data).toMatchObject({
      ok: true,
      version: 2,
      attempts: 1,
      before: { name: "one" },
      after: { name: "new", note: null },
    });
    expect((await all())[0]).toMatchObject({ version: 2, name: "new", note: null });
    const again = await update({ set: { name: "late" } });
    expect(again).toMatchObject({
      isError: true,
      data: {
        ok: false,
        code: "version_conflict",
        expectedVersion: 1,
        currentVersion: 2,
        attempts: 1,
        current: { name: "new" },
      },
    });
    expect(again.text).toContain("Think again");
    expect(await update({ key: { id: 99 } })).toMatchObject({
      isError: true,
      data: { code: "not_found", currentVersion: null },
    });
    expect((await all())[0]).toMatchObject({ version: 2, name: "new" });
  });

  test("I-14 T4 of 20 swaps of the same version exactly one wins", async () => {
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) => update({ set: { name: `w${n}` } })),
    );
    expect(results.filter(({ isError }) => isError !== true)).toHaveLength(1);
    expect((await all())[0]).toMatchObject({ version: 2 });
  });

  test("I-15 a budget reads again and retries; used up, it fails with all the facts", async () => {
    expect(await update({ key: { id: 2 } }, 0)).toMatchObject({
      isError: true,
      data: { attempts: 1 },
    });
    expect((await update({ key: { id: 2 } }, 1)).data).toMatchObject({
      ok: true,
      attempts: 2,
      version: 8,
    });
    let moves = 0;
    const moving: SqlDatabase = {
      ...engine.database,
      async transaction(work, end) {
        await engine.run("UPDATE items SET version = version + 1 WHERE id = 3");
        moves += 1;
        return engine.database.transaction(work, end);
      },
    };
    const tool = sqlUpdateRow({ database: stagingDatabase(moving), tables, retryBudget: 2 });
    const failed = await tool.execute(
      sampleCall({ table: "items", key: { id: 3 }, version: 1, set: { name: "x" } }),
    );
    expect(failed).toMatchObject({
      isError: true,
      data: {
        ok: false,
        code: "version_conflict",
        attempts: 3,
        expectedVersion: 3,
        currentVersion: 4,
      },
    });
    expect(moves).toBe(3);
    expect((await all())[2]).toMatchObject({ name: "three" });
  });

  test("I-16 tools that write take no bare handle", () => {
    const bare = engine.database as unknown as ReturnType<typeof stagingDatabase>;
    for (const make of [sqlUpdateRow, sqlRestoreRow, sqlDryRun]) {
      expect(() => make({ database: bare, tables })).toThrow("stagingDatabase(handle)");
    }
  });

  test("I-17 a dry run shows the rows before and after and always rolls back", async () => {
    const before = await all();
    const set = { name: "x" };
    const changed = await dryRun({ operation: "update", set, where: where("id", "<=", 2) });
    expect(changed.data).toMatchObject({
      affected: 2,
      signals: [],
      before: [{ name: "one" }, { name: "two" }],
      after: [{ name: "x" }, { name: "x" }],
    });
    expect(changed.text).toContain("rolled back");
    expect(
      (await dryRun({ operation: "delete", where: [{ column: "note", is: "is null" }] })).data,
    ).toMatchObject({ affected: 1, before: [{ id: 2 }], after: [] });
    expect(
      (await dryRun({ operation: "insert", set: { id: 9, version: 1, name: "n" } })).data,
    ).toMatchObject({ affected: 1, after: [{ id: 9, name: "n", price: null }] });
    // A duplicate note: the database refuses in the middle of the transaction.
    expect(
      await dryRun({ operation: "update", set: { note: "n1" }, where: where("id", "=", 3) }),
    ).toMatchObject({ isError: true });
    expect(await all()).toEqual(before);
  });

  test("I-17 a mismatch between preview filter and affected rows is a signal and no error", async () => {
    const set = { name: "x" };
    const other = await dryRun({
      operation: "update",
      set,
      where: where("id", "<=", 2),
      previewWhere: where("id", "=", 1),
    });
    expect(other.isError).toBeUndefined();
    expect(other.data).toMatchObject({ signals: [{ signal: "preview_mismatch" }], affected: 2 });
    expect(other.text).toContain("Attention");
    // As many rows, but others.
    const swapped = await dryRun({
      operation: "update",
      set,
      where: where("id", "=", 2),
      previewWhere: where("id", "=", 1),
    });
    expect(swapped.data).toMatchObject({ signals: [{ signal: "preview_mismatch" }] });
    const same = await dryRun({
      operation: "update",
      set,
      where: where("id", "=", 2),
      previewWhere: where("name", "=", "two"),
    });
    expect(same.data).toMatchObject({ signals: [] });
  });

  test("I-17 snapshots end at 100 rows", async () => {
    const rows = Array.from({ length: 150 }, (_, n) => `(${n + 10}, 1, 'many', 0, NULL, NULL)`);
    await engine.run(`INSERT INTO items VALUES ${rows.join(", ")}`);
    const { data } = await dryRun({
      operation: "update",
      set: { price: 1 },
      where: where("name", "=", "many"),
    });
    const { before, after, affected, capped } = data as {
      before: unknown[];
      after: unknown[];
      affected: number;
      capped: boolean;
    };
    expect([before.length, after.length, affected, capped]).toEqual([100, 100, 150, true]);
  });

  test("S2-96 T9 undo puts the old values back, refuses when the row changed since, and not twice", async () => {
    const before = (await all())[0];
    const undo = await undoOf(await update({ set: { name: "new", price: 9.25, note: null } }));
    expect(undo).toMatchObject({ tool: "sql.restore_row", irreversible: false });
    expect((await restore(undo)).isError).toBeUndefined();
    expect((await all())[0]).toEqual({ ...before, version: 3 });
    expect(await restore(undo)).toMatchObject({
      isError: true,
      data: { code: "version_conflict" },
    });

    const later = await undoOf(await update({ version: 3, set: { name: "agent" } }));
    await engine.run("UPDATE items SET name = 'person', version = version + 1 WHERE id = 1");
    expect(await restore(later)).toMatchObject({
      isError: true,
      data: { code: "version_conflict" },
    });
    expect((await all())[0]).toMatchObject({ name: "person" });
  });

  test("T4 preview and state version of a swap follow the row, and nothing is changed by asking", async () => {
    const tool = sqlUpdateRow({ database: staging(), tables });
    const call = sampleCall({ table: "items", key: { id: 1 }, version: 1, set: { name: "new" } });
    const rows = await all();
    const version = await tool.stateVersion?.(call);
    expect((await tool.dryRun?.(call))?.preview).toMatch(/"one"[\s\S]*"new"/);
    expect(await tool.probe?.(call)).toEqual({ happened: false });
    expect(await all()).toEqual(rows);
    expect(await tool.stateVersion?.(call)).toBe(version);
    await engine.run("UPDATE items SET price = 77 WHERE id = 1");
    expect(await tool.stateVersion?.(call)).not.toBe(version);
    await engine.run("UPDATE items SET version = 2 WHERE id = 1");
    await expect(tool.dryRun?.(call)).rejects.toThrow("Somebody changed the row");
    expect(await tool.probe?.(call)).toMatchObject({ happened: "unknown" });
  });

  test("T32 names only from the description, values only as parameters", async () => {
    const before = await all();
    const corpus = [
      "'",
      '"',
      "';--",
      "' OR '1'='1",
      '" OR 1=1 --',
      "1; DROP TABLE items",
      "'); DELETE FROM items; --",
      "\\'; DROP TABLE items; --",
      "$1",
      "?",
      "name) = 1; --",
      'name" = (SELECT secret FROM items) --',
      "secret",
      "rowid",
      "ctid",
      "__proto__",
      "constructor",
      "toString",
      "items; --",
      "pg_sleep(5)",
      "\u0000",
      "%27",
      "/**/",
      "NULL",
      "x'41'",
      "\u02BC OR 1=1",
    ];
    for (const text of corpus) {
      for (const result of [
        await update({ table: text }),
        await update({ set: { [text]: "x" } }),
        await update({ key: { [text]: 1 } }),
        await update({ key: { id: 1, [text]: 1, a: 1 } }),
        await dryRun({ operation: "update", set: { [text]: 1 }, where: where(text, "=", 1) }),
        await dryRun({ operation: "delete", where: where("id", text, 1) }),
        await dryRun({ operation: "insert", set: { [`${text} `]: 1 } }),
      ]) {
        expect(result.isError, text).toBe(true);
        expect(result.text, text).not.toMatch(/syntax|near|SELECT|relation|no such column/i);
      }
    }
    expect(await all()).toEqual(before);
    let version = 1;
    for (const text of corpus.filter((value) => value !== "\u0000")) {
      const result = await update({ version, set: { name: text } });
      expect(result.data, text).toMatchObject({ ok: true, after: { name: text } });
      version += 1;
    }
    expect(await all()).toMatchObject([
      { id: 1 },
      { id: 2, name: "two" },
      { id: 3, name: "three" },
    ]);
    const found = await dryRun({ operation: "delete", where: where("name", "=", "' OR '1'='1") });
    expect(found.data).toMatchObject({ affected: 0 });
  });

  test("T32 the version, the key and undeclared columns cannot be set by a swap", async () => {
    for (const column of ["version", "id", "secret"]) {
      expect(await update({ set: { [column]: 5 } })).toMatchObject({
        isError: true,
        data: { refused: "not_allowed" },
      });
    }
    expect(JSON.stringify((await update({})).data)).not.toContain("secret");
  });

  test("a change that the database refuses is told without its words, and undone", async () => {
    const result = await update({ set: { name: "x", note: "n3" } });
    expect(result).toMatchObject({ isError: true, data: { refused: "unusable" } });
    expect((await all())[0]).toMatchObject({ name: "one", version: 1 });
  });
});
