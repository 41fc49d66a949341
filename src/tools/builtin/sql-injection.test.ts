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
import { sqlUpdateRow } from "./sql-update-row.ts";

describe.each(SQL_ENGINES)("%s", (_dialect, open) => {
  let engine: SqlEngine;
  beforeAll(async () => {
    engine = await open();
  });
  beforeEach(() => resetItems(engine));
  afterAll(() => engine.close());

  const tables = [ITEMS];
  const staging = () => stagingDatabase(engine.database);
  const update = (input: JsonObject, retryBudget = 0) =>
    sqlUpdateRow({ database: staging(), tables, retryBudget }).execute(
      sampleCall({ table: "items", key: { id: 1 }, version: 1, set: { name: "new" }, ...input }),
    );
  const dryRun = (input: JsonObject) =>
    sqlDryRun({ database: staging(), tables }).execute(sampleCall({ table: "items", ...input }));
  const all = () => engine.run("SELECT * FROM items ORDER BY id");
  const where = (column: string, is: string, value: JsonObject[string]) => [{ column, is, value }];

  test("names only from the description, values only as parameters [T32]", async () => {
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

  test("the version, the key and undeclared columns cannot be set by a swap [T32]", async () => {
    for (const column of ["version", "id", "secret"]) {
      expect(await update({ set: { [column]: 5 } })).toMatchObject({
        isError: true,
        data: { refused: "not_allowed" },
      });
    }
    expect(JSON.stringify((await update({})).data)).not.toContain("secret");
  });
});
