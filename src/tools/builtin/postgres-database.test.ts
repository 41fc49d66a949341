import { expect, test, vi } from "vitest";
import { ITEMS, openPostgres, resetItems } from "../../../tests/support/sql-engines.ts";
import { isSallyportError } from "../../model/errors.ts";
import { type PostgresPool, postgresDatabase } from "./postgres-database.ts";
import { swapRow } from "./sql-update-row.ts";

/** A pool with one connection on which one statement fails. */
function brokenAt(text: string, error: Error) {
  const seen: string[] = [];
  const pool: PostgresPool = {
    connect: async () => ({
      async query(query) {
        seen.push(query.text);
        if (query.text === text) throw error;
        return { rows: [], rowCount: 0 };
      },
      release: (destroy) => seen.push(`release ${destroy}`),
      on: () => {},
      removeListener: () => {},
    }),
  };
  const database = postgresDatabase({ name: "p", pool });
  const outcome = database
    .transaction(function* () {
      yield { text: "UPDATE", values: [] };
    }, "commit")
    .catch((caught: unknown) => caught);
  return { outcome, seen };
}

test("a connection lost while committing leaves the outcome open and is not used again [T8]", async () => {
  const { outcome, seen } = brokenAt("COMMIT", new Error("gone"));
  expect(isSallyportError(await outcome, "outcome_unknown")).toBe(true);
  expect(seen.at(-1)).toBe("release true");
});

test("a refused statement is rolled back and the connection goes back to the pool", async () => {
  const { outcome, seen } = brokenAt("UPDATE", Object.assign(new Error("no"), { code: "23505" }));
  expect(await outcome).toMatchObject({ name: "Refusal", code: "unusable" });
  expect(seen.slice(-2)).toEqual(["ROLLBACK", "release false"]);
  expect(seen).not.toContain("COMMIT");
});

test("the before-image is the replaced row, also when another writer did not raise the version [S2-96]", async () => {
  const engine = await openPostgres();
  await resetItems(engine);
  const other = engine.database.transaction(function* () {
    yield { text: "UPDATE items SET name = 'person' WHERE id = 1", values: [] };
    yield { text: "SELECT pg_sleep(2)", values: [] };
  }, "commit");
  const asleep =
    "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
  await vi.waitFor(async () => expect(await engine.run(asleep)).toHaveLength(1), 60_000);
  const input = { table: "items", key: { id: 1 }, version: 1, set: { name: "agent" } };
  const swapped = await swapRow(engine.database, ITEMS, input, { end: "commit", retryBudget: 0 });
  await other;
  expect(swapped).toMatchObject({ ok: true, before: { name: "person" }, after: { name: "agent" } });
  await engine.close();
});

test("sql.query: an advisory lock does not outlive the query, and no connection is left that held one [L9]", async () => {
  const engine = await openPostgres();
  const lock = { text: "SELECT pg_advisory_lock(4711)", values: [] };
  for (let n = 0; n < 6; n += 1) await engine.database.read(lock, 1);
  const held = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711";
  await vi.waitFor(async () => expect(await engine.run(held)).toEqual([]), 5_000);
  const free = await engine.run("SELECT pg_try_advisory_xact_lock(4711) AS free");
  expect(free).toEqual([{ free: true }]);
  await engine.close();
});
