import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  ITEMS,
  resetItems,
  SQL_ENGINES,
  type SqlEngine,
} from "../../../tests/support/sql-engines.ts";
import type { JsonObject } from "../../util/json.ts";
import { sampleCall } from "../define-tool.ts";
import { sqlDryRun } from "./sql-query.ts";
import { stagingDatabase } from "./sql-table.ts";

describe.each(SQL_ENGINES)("%s", (_dialect, open) => {
  let engine: SqlEngine;
  beforeAll(async () => {
    engine = await open();
  });
  beforeEach(() => resetItems(engine));
  afterAll(() => engine.close());

  const tables = [ITEMS];
  const staging = () => stagingDatabase(engine.database);
  const dryRun = (input: JsonObject) =>
    sqlDryRun({ database: staging(), tables }).execute(sampleCall({ table: "items", ...input }));
  const all = () => engine.run("SELECT * FROM items ORDER BY id");
  const where = (column: string, is: string, value: JsonObject[string]) => [{ column, is, value }];

  test("a dry run shows the rows before and after and always rolls back [I-17]", async () => {
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

  test("a mismatch between preview filter and affected rows is a signal and no error [I-17]", async () => {
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

  test("snapshots end at 100 rows [I-17]", async () => {
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
});
