import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  ITEMS,
  resetItems,
  SQL_ENGINES,
  type SqlEngine,
} from "../../../tests/support/sql-engines.ts";
import type { JsonObject } from "../../util/json.ts";
import { sampleCall } from "../define-tool.ts";
import type { ToolResult } from "../tool.ts";
import { makeUndo, type UndoRecord } from "../tool-call.ts";
import { sqlDryRun } from "./sql-query.ts";
import { type SqlDatabase, stagingDatabase } from "./sql-table.ts";
import { sqlRestoreRow, sqlUpdateRow } from "./sql-update-row.ts";

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
  const all = () => engine.run("SELECT * FROM items ORDER BY id");
  async function undoOf(result: ToolResult): Promise<UndoRecord> {
    const tool = sqlUpdateRow({ database: staging(), tables });
    return (await makeUndo(tool, sampleCall({}), result)).undo as UndoRecord;
  }
  const restore = (undo: UndoRecord) =>
    sqlRestoreRow({ database: staging(), tables }).execute(sampleCall(undo.input));

  test("one guarded UPDATE changes the row and raises the version itself [I-14]", async () => {
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

  test("of 20 swaps of the same version exactly one wins [I-14 T4]", async () => {
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) => update({ set: { name: `w${n}` } })),
    );
    expect(results.filter(({ isError }) => isError !== true)).toHaveLength(1);
    expect((await all())[0]).toMatchObject({ version: 2 });
  });

  test("a budget reads again and retries; used up, it fails with all the facts [I-15]", async () => {
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

  test("tools that write take no bare handle [I-16]", () => {
    const bare = engine.database as unknown as ReturnType<typeof stagingDatabase>;
    for (const make of [sqlUpdateRow, sqlRestoreRow, sqlDryRun]) {
      expect(() => make({ database: bare, tables })).toThrow("stagingDatabase(handle)");
    }
  });

  test("undo puts the old values back, refuses when the row changed since, and not twice [S2-96 T9]", async () => {
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

  test("preview and state version of a swap follow the row, and nothing is changed by asking [T4]", async () => {
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
    await expect(tool.dryRun?.(call)).rejects.toThrow("was changed meanwhile");
    expect(await tool.probe?.(call)).toMatchObject({ happened: "unknown" });
  });

  test("a change that the database refuses is reported without its message and rolled back", async () => {
    const result = await update({ set: { name: "x", note: "n3" } });
    expect(result).toMatchObject({ isError: true, data: { refused: "unusable" } });
    expect((await all())[0]).toMatchObject({ name: "one", version: 1 });
  });
});
