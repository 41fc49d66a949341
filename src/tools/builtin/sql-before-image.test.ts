import { expect, test } from "vitest";
import { openPostgres, openSqlite } from "../../../tests/support/sql-engines.ts";
import { sampleCall } from "../define-tool.ts";
import { makeUndo, type UndoRecord } from "../tool-call.ts";
import { sqlStagingTools } from "./sql-query.ts";
import { type SqlDatabase, stagingDatabase } from "./sql-table.ts";

/** Sets column `v` of row 1 to null and takes it back. */
async function changeAndUndo(database: SqlDatabase, version: number): Promise<void> {
  const tables = [{ name: "t", key: ["id"], version: "version", columns: ["v"] }];
  const [, update, restore] = sqlStagingTools({ database: stagingDatabase(database), tables });
  const call = sampleCall({ table: "t", key: { id: 1 }, version, set: { v: null } });
  const result = await update!.execute(call);
  expect(result.isError).toBeUndefined();
  const undo = (await makeUndo(update!, call, result)).undo as UndoRecord;
  const kept = sampleCall(JSON.parse(JSON.stringify(undo.input)));
  expect((await restore!.execute(kept)).isError).toBeUndefined();
}

test("SQLite: undo restores the exact value and storage class [S2-96]", async () => {
  const { database, run, close } = await openSqlite();
  await run("CREATE TABLE t (id INTEGER PRIMARY KEY, version INTEGER, v)");
  const look = () => run("SELECT typeof(v) AS kind, quote(v) AS value FROM t");
  for (const literal of [
    "1",
    "1.0",
    "-0.0",
    "9223372036854775807",
    "-9223372036854775808",
    "0.1",
    "9e999",
    "''",
    "'5'",
    "x'00ff'",
    "x''",
    "'ä\u{1F600}'",
    "1e300",
    "9007199254740993",
  ]) {
    await run("DELETE FROM t");
    await run(`INSERT INTO t VALUES (1, 1, ${literal})`);
    const before = await look();
    await changeAndUndo(database, 1);
    expect(await look(), literal).toEqual(before);
  }
  await close();
});

test("Postgres: undo restores the exact value of any type [S2-96]", async () => {
  const { database, run, close } = await openPostgres();
  const look = () => run("SELECT v::text, pg_typeof(v) AS kind FROM t");
  const values = [
    "'2026-11-15 10:00:00.123456+02'::timestamptz",
    "'2026-11-15'::date",
    "9223372036854775807::bigint",
    "1.10::numeric(20,4)",
    "0.1::float8",
    "'NaN'::float8",
    "0.1::float4",
    "'\\x00ff'::bytea",
    "true",
    `'{"a": [1, null]}'::jsonb`,
    `'{"b":1,  "a":2}'::json`,
    "ARRAY['a,b', NULL, '\"']",
    "'1 day 02:03'::interval",
    "'{}'::text",
    "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
    "'[1,5)'::int4range",
  ];
  for (const value of values) {
    await run("DROP TABLE IF EXISTS t");
    await run(`CREATE TABLE t AS SELECT 1 AS id, 1 AS version, ${value} AS v`);
    const before = await look();
    await changeAndUndo(database, 1);
    expect(await look(), value).toEqual(before);
  }
  await close();
});
