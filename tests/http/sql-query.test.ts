// One query of an agent must not hold up the process: people and the kill switch answer while it runs.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { sqliteDatabase, sqlQuery } from "../../src/tools/index.ts";
import { stopwatch } from "../../src/util/clock.ts";
import { openHttp } from "./http-world.ts";

const ENDLESS =
  "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c";

function shop(deadlineMs?: number) {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-sql-"));
  const handle = new Database(path.join(folder, "shop.db"));
  onTestFinished(() => {
    handle.close();
    rmSync(folder, { recursive: true, force: true });
  });
  handle.exec("CREATE TABLE t (n); INSERT INTO t VALUES (1), (2)");
  const database = sqliteDatabase({
    name: "shop",
    handle,
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  });
  return sqlQuery({ database, permissionClass: "readonly" });
}

async function world(deadlineMs?: number) {
  const http = await openHttp({ port: { tools: [shop(deadlineMs)] } });
  const agent = await http.client("acme", "agent");
  const operator = await http.client("acme", "operator");
  const { id } = await agent.sessions.open({});
  const query = (callId: string, sql: string) =>
    agent.sessions.call({ id, callId, tool: "sql.query", input: { sql } });
  return { operator, query };
}

test("sql.query: spaces and comments before a query take linear time [H6]", {
  timeout: 120_000,
}, async () => {
  const { operator, query } = await world();
  for (const [index, start] of [
    " ".repeat(40),
    "/**/".repeat(40),
    "--\n".repeat(3_000),
  ].entries()) {
    const before = stopwatch.now();
    const asked = query(`c${index}`, `${start}x`);
    await operator.switch.get();
    expect(await asked).toMatchObject({ text: expect.stringContaining("Only one query") });
    expect(stopwatch.now() - before).toBeLessThan(5_000);
    expect(await query(`d${index}`, `${start}SELECT n FROM t`)).toMatchObject({
      answer: "done",
      text: expect.stringContaining("2 rows"),
    });
  }
});

test("sql.query: the kill switch answers while an endless query runs, and the query is ended [H6]", {
  timeout: 120_000,
}, async () => {
  const { operator, query } = await world(2_000);
  let isEnded = false;
  const asked = query("endless", ENDLESS).finally(() => {
    isEnded = true;
  });
  // Given time to start.
  for (let nth = 0; nth < 20; nth += 1) await operator.switch.get();
  expect(await operator.switch.stop({ reason: "endless" })).toEqual({ stopped: true });
  expect(isEnded, "the switch did not wait for it").toBe(false);
  expect(await asked).toMatchObject({ text: expect.stringContaining("longer than 2000 ms") });
  await operator.switch.resume({ reason: "again" });
  expect(await query("after", "SELECT n FROM t")).toMatchObject({
    text: expect.stringContaining("2 rows"),
  });
});
