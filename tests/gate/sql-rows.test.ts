// Rows that agents add and delete in a staging table: approved, by version, and put back by a rollback.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AtPoint, GateOptions } from "../../src/gate/options.ts";
import { sqlStagingTools } from "../../src/tools/builtin/sql-query.ts";
import { type SqlTable, stagingDatabase } from "../../src/tools/builtin/sql-table.ts";
import type { JsonObject } from "../../src/util/json.ts";
import {
  AGENT,
  approve,
  decisionIdOf,
  openGate,
  PERSON,
  request,
  rules,
} from "../support/port-world.ts";
import { ITEMS, resetItems, SQL_ENGINES, type SqlEngine } from "../support/sql-engines.ts";

const ALL: SqlTable = { ...ITEMS, columns: ["name", "price", "note", "secret"] };

describe.each(SQL_ENGINES)("rows of %s", (_dialect, open) => {
  let engine: SqlEngine;
  beforeAll(async () => {
    engine = await open();
  });
  beforeEach(async () => {
    await engine.run("DROP TABLE IF EXISTS parts");
    await resetItems(engine);
  });
  afterAll(() => engine.close());

  const all = () => engine.run("SELECT * FROM items ORDER BY id");

  function openTools(over: Partial<GateOptions> = {}, table = ALL) {
    const tools = sqlStagingTools({ database: stagingDatabase(engine.database), tables: [table] });
    const world = openGate({ tools, ...over });
    const session = world.gate.sessions.open({ agent: AGENT });
    let calls = 0;
    const propose = (name: string, input: JsonObject) => {
      calls += 1;
      return session.call(request(name, { table: "items", ...input }, `c-${calls}`));
    };
    const approved = async (name: string, input: JsonObject) => {
      const [answer] = await approve(world.gate, decisionIdOf(await propose(name, input)));
      return answer;
    };
    return { ...world, session, propose, approved };
  }

  const NEW = { row: { id: 9, name: "nine", price: 9.5, note: null } };
  const FIRST = { key: { id: 1 }, version: 1 };

  test("a row is added as approved and removed by the rollback [S2-96 I-14]", async () => {
    const before = await all();
    const { gate, propose, session } = openTools();
    const id = decisionIdOf(await propose("sql.insert_row", NEW));
    expect(JSON.stringify(await gate.interactions.shown(id))).toContain("nine");
    expect(await all()).toEqual(before);
    expect(await approve(gate, id)).toMatchObject([{ answer: "done" }]);
    expect((await all())[3]).toMatchObject({ id: 9, version: 1, name: "nine", note: null });
    expect(await session.rollback(PERSON)).toMatchObject({ undone: [{}] });
    expect(await all()).toEqual(before);
  });

  test("a row is deleted as approved and put back exactly by the rollback [S2-96 I-14]", async () => {
    const before = await all();
    const { gate, propose, session } = openTools();
    const id = decisionIdOf(await propose("sql.delete_row", FIRST));
    expect(JSON.stringify(await gate.interactions.shown(id))).toContain("one");
    expect(await all()).toEqual(before);
    expect(await approve(gate, id)).toMatchObject([{ answer: "done" }]);
    expect(await all()).toEqual(before.slice(1));
    expect(await session.rollback(PERSON)).toMatchObject({ undone: [{}] });
    expect(await all()).toEqual(before);
  });

  test("nothing is replaced, and a row that changed since the approval is not deleted [T4]", async () => {
    const { gate, propose } = openTools();
    const taken = decisionIdOf(await propose("sql.insert_row", { row: { id: 8, name: "mine" } }));
    const gone = decisionIdOf(await propose("sql.delete_row", FIRST));
    await engine.run("INSERT INTO items VALUES (8, 1, 'theirs', 1, 'n8', 's')");
    await engine.run("UPDATE items SET name = 'theirs', version = 2 WHERE id = 1");
    for (const id of [taken, gone]) {
      const [answer] = await approve(gate, id);
      expect(answer?.answer).not.toBe("done");
    }
    const names = (await all()).map(({ name }) => name);
    expect(names).toEqual(["theirs", "two", "three", "theirs"]);
  });

  test("a change between the last look and the statement is refused by the statement [T4]", async () => {
    let sql = "";
    const at: AtPoint = (point) => {
      if (point === "S6.before" && sql !== "") waiting = engine.run(sql);
    };
    let waiting: Promise<unknown> = Promise.resolve();
    const slow = {
      ...engine.database,
      transaction: async (...given: Parameters<typeof engine.database.transaction>) => {
        await waiting;
        return engine.database.transaction(...given);
      },
    } as typeof engine.database;
    const tools = sqlStagingTools({ database: stagingDatabase(slow), tables: [ALL] });
    const { approved } = openTools({ tools, at });
    sql = "UPDATE items SET name = 'theirs', version = 2 WHERE id = 1";
    expect(await approved("sql.delete_row", FIRST)).toMatchObject({
      answer: "failed",
      data: { refused: "conflict" },
    });
    sql = "INSERT INTO items VALUES (9, 1, 'theirs', 1, 'n9', 's')";
    expect(await approved("sql.insert_row", NEW)).toMatchObject({
      answer: "failed",
      data: { refused: "already_exists" },
    });
    expect((await all()).map(({ name }) => name)).toEqual(["theirs", "two", "three", "theirs"]);
  });

  test("a conflict of sql.update_row is reported without a retry; a budget reads again, and used up it fails with all the facts [I-15]", async () => {
    let conflicts = 0;
    const at: AtPoint = (point) => {
      if (point === "S6.before") isMoving = true;
    };
    let isMoving = false;
    const busy = {
      ...engine.database,
      transaction: async (...given: Parameters<typeof engine.database.transaction>) => {
        if (isMoving && conflicts > 0) {
          conflicts -= 1;
          await engine.run("UPDATE items SET version = version + 1 WHERE id = 1");
        }
        return engine.database.transaction(...given);
      },
    } as typeof engine.database;
    const update = async (retryBudget: number | undefined, others: number, version: number) => {
      const database = stagingDatabase(busy);
      const budget = retryBudget === undefined ? {} : { retryBudget };
      const tools = sqlStagingTools({ database, tables: [ALL], ...budget });
      const { approved } = openTools({ tools, at });
      [isMoving, conflicts] = [false, others];
      const set = { name: `version ${version}` };
      return approved("sql.update_row", { table: "items", key: { id: 1 }, version, set });
    };
    const conflict = { ok: false, code: "version_conflict" };
    // By default the agent reads again and reconsiders.
    expect(await update(undefined, 1, 1)).toMatchObject({
      answer: "failed",
      text: expect.stringContaining("Think again"),
      data: { ...conflict, attempts: 1, expectedVersion: 1, currentVersion: 2 },
    });
    expect(await update(2, 2, 2)).toMatchObject({
      answer: "done",
      data: { ok: true, attempts: 3, version: 5 },
    });
    expect(await update(2, 9, 5)).toMatchObject({
      answer: "failed",
      data: {
        ...conflict,
        attempts: 3,
        expectedVersion: 7,
        currentVersion: 8,
        current: { id: 1, version: 8, name: "version 2" },
      },
    });
    expect((await all())[0]).toMatchObject({ version: 8, name: "version 2" });
  });

  test("the rollback leaves alone what others changed since [T9]", async () => {
    const { approved, session } = openTools();
    await approved("sql.insert_row", NEW);
    await approved("sql.delete_row", FIRST);
    await engine.run("UPDATE items SET name = 'theirs', version = 2 WHERE id = 9");
    await engine.run("INSERT INTO items VALUES (1, 1, 'theirs', 1, 'n1', 's')");
    const report = await session.rollback(PERSON);
    expect(report).toMatchObject({ undone: [] });
    expect((await all()).map(({ name }) => name)).toEqual(["theirs", "two", "three", "theirs"]);
  });

  test("what could not be undone exactly is neither deleted nor added, and a reviewer sees why [T12]", async () => {
    const before = await all();
    const reason = "Deleting is open in this test.";
    const policy = rules({ id: "open", effect: "allow", tool: "sql.*", reason });
    const text = expect.stringContaining("could not be undone exactly");
    const refused = { answer: "failed", text, data: { refused: "not_allowed" } };
    expect(await openTools({ policy }, ITEMS).propose("sql.delete_row", FIRST)).toMatchObject(
      refused,
    );
    await engine.run(
      "CREATE TABLE parts (id integer PRIMARY KEY, item integer REFERENCES items(id) ON DELETE CASCADE)",
    );
    await engine.run("INSERT INTO parts VALUES (1, 1)");
    expect(await openTools({ policy }).propose("sql.delete_row", FIRST)).toMatchObject(refused);
    expect(await openTools({ policy }).propose("sql.insert_row", NEW)).toMatchObject(refused);
    const { gate, propose } = openTools();
    const id = decisionIdOf(await propose("sql.delete_row", FIRST));
    expect(JSON.stringify(await gate.interactions.shown(id))).toContain("undone exactly");
    expect(await approve(gate, id)).toMatchObject([{ answer: "failed" }]);
    expect(await all()).toEqual(before);
    expect(await engine.run("SELECT * FROM parts")).toHaveLength(1);
  });

  test("keys are whole, columns are declared, and only a rollback puts back or removes [T32]", async () => {
    const { propose, approved } = openTools({}, { ...ALL, writable: ["name"] });
    for (const [name, input] of [
      ["sql.insert_row", { row: { name: "keyless" } }],
      ["sql.insert_row", { row: { id: 9, price: 1 } }],
      ["sql.insert_row", { row: { id: 9, version: 5 } }],
      ["sql.insert_row", { row: { id: 9, 'name" = 1; --': "x" } }],
      ["sql.delete_row", { key: { name: "one" }, version: 1 }],
      ["sql.delete_row", { key: { id: 99 }, version: 1 }],
    ] as const) {
      expect(await approved(name, input as JsonObject), name).toMatchObject({ answer: "failed" });
    }
    for (const name of ["sql.remove_row", "sql.put_back_row"]) {
      const input = name === "sql.remove_row" ? FIRST : NEW;
      expect(await propose(name, input)).toMatchObject({ answer: "denied" });
    }
    expect(await all()).toHaveLength(3);
  });
});
