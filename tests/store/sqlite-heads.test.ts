import Sqlite from "better-sqlite3";
import { expect, onTestFinished, test, vi } from "vitest";
import { change, insert } from "../../src/store/conformance/samples.ts";
import { sqliteEngine } from "../../src/store/sqlite/index.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";

const TENANTS = 50;

test("heads: the ends of all chains are read in one statement and not one by one [SL7]", async () => {
  const parts = { random: systemRandom, timers: systemTimers, patienceMs: 1_000 };
  const engine = sqliteEngine({ file: ":memory:", ...parts });
  onTestFinished(() => engine.close());
  const names = Array.from({ length: TENANTS }, (_, n) => `tenant-${String(n).padStart(4, "0")}`);
  await Promise.all(names.map((name) => engine.commit(name, change([insert("a")]))));
  const executed = countStatements();
  const together = await engine.heads();
  expect(executed()).toBe(1);
  expect(together).toEqual(await Promise.all(names.map((name) => engine.head(name))));
  expect(executed(), "void: the count misses statements").toBeGreaterThan(TENANTS);
});

/** How many statements the driver has executed since, on any connection of this thread. */
function countStatements(): () => number {
  const database = new Sqlite(":memory:");
  const statement = Object.getPrototypeOf(database.prepare("SELECT 1")) as Sqlite.Statement;
  database.close();
  const spies = (["get", "all", "run", "iterate"] as const).map((name) =>
    vi.spyOn(statement, name),
  );
  onTestFinished(() => {
    for (const spy of spies) spy.mockRestore();
  });
  return () => spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0);
}
