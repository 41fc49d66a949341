import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { change, insert, soundTrail } from "../../src/store/conformance/rows.ts";
import { DECISIONS } from "../../src/store/decision-rows.ts";
import type { Engine } from "../../src/store/engine.ts";
import { postgresEngine } from "../../src/store/postgres/index.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { type Fault, faultyPool } from "../support/faulty-pool.ts";
import { endPool } from "../support/postgres-connections.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres-database.ts";
import { isWanted } from "../support/stores.ts";

// skip: STORES names the stores to test, and this is not one of them
describe.skipIf(!isWanted("postgres"))("postgres: a line that goes dead", () => {
  let database: FreshDatabase;
  let pool: pg.Pool;
  let engine: Engine;
  /** Filled by the tests once the store is open, because opening it has a COMMIT and a SET of its own. */
  const faults: Fault[] = [];
  let schemas = 0;

  beforeAll(async () => {
    database = await freshDatabase(inject("pgUrl"));
  });
  afterAll(() => database.drop());
  beforeEach(async () => {
    const options = { connectionString: database.url, max: 6, pipeline: true };
    pool = new pg.Pool(options).on("error", () => {});
    schemas += 1;
    engine = await postgresEngine({
      pool: faultyPool(pool, faults),
      schema: `lines_${schemas}`,
      random: systemRandom,
      timers: systemTimers,
      patienceMs: 2_000,
    });
  });
  afterEach(async () => {
    await engine.close();
    await endPool(pool);
  });

  const LOST: readonly (readonly Fault[])[] = [
    ["COMMIT is lost"],
    ["answer to COMMIT is lost"],
    ["COMMIT is lost", "COMMIT is lost", "answer to COMMIT is lost"],
    ["SET is lost"],
    ["SET is lost", "answer to COMMIT is lost"],
  ];
  test.each(LOST.map((list) => [list] as const))(
    "S0-104 %j: it is written once, and the answer is right",
    async (list) => {
      faults.push(...list);
      const result = await engine.commit("acme", change([insert("a")]));
      expect(faults, "all of it happened").toEqual([]);
      expect(result).toMatchObject({ committed: true, seq: 1 });
      expect(await engine.get("acme", DECISIONS, "a")).toBeDefined();
      expect(await soundTrail(engine)).toHaveLength(1);
    },
  );

  test("a tenant who was only refused does not vouch for the write of another", async () => {
    await engine.commit("acme", change([insert("a")]));
    faults.push("COMMIT is lost");
    const [refused, written] = await Promise.all([
      engine.commit("acme", change([insert("a")])),
      engine.commit("globex", change([insert("b")])),
    ]);
    expect([refused.committed, written.committed]).toEqual([false, true]);
    expect(await engine.get("globex", DECISIONS, "b"), "it was acknowledged").toBeDefined();
    expect(await soundTrail(engine, "globex")).toHaveLength(1);
  });

  test("a change without an event is not taken for written when its COMMIT was lost", async () => {
    await engine.commit("acme", change([insert("a")]));
    faults.push("COMMIT is lost");
    const silent = change([insert("b")], []);
    const result = await engine.commit("acme", silent).catch(() => ({ committed: false }));
    const isThere = (await engine.get("acme", DECISIONS, "b")) !== undefined;
    expect(isThere, "what was acknowledged is there, what was not is not").toBe(result.committed);
  });
});
