import { Worker } from "node:worker_threads";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { DECISIONS } from "../../src/model/decision.ts";
import { change, insert, soundTrail } from "../../src/store/conformance/samples.ts";
import type { Engine } from "../../src/store/engine.ts";
import type { PgPool } from "../../src/store/postgres/connection.ts";
import { postgresEngine } from "../../src/store/postgres/index.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { type Fault, faultyPool } from "../support/faulty-pool.ts";
import { endPool } from "../support/postgres-connections.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres-database.ts";
import { isWanted } from "../support/stores.ts";

// skip: STORES names the stores to test, and this is not one of them
describe.skipIf(!isWanted("postgres"))("postgres: a connection that goes dead", () => {
  let database: FreshDatabase;
  let pool: pg.Pool;
  let engine: Engine;
  /** Filled by the tests once the store is open, because opening it has a COMMIT and a SET of its own. */
  const faults: Fault[] = [];
  let meanwhile = async (): Promise<void> => {};
  let schemas = 0;

  beforeAll(async () => {
    database = await freshDatabase(inject("pgUrl"));
  });
  afterAll(() => database.drop());
  beforeEach(async () => {
    const options = { connectionString: database.url, max: 6, pipeline: true };
    pool = new pg.Pool(options).on("error", () => {});
    schemas += 1;
    engine = await openEngine(faultyPool(pool, faults, () => meanwhile()));
  });
  const openEngine = (of: PgPool) =>
    postgresEngine({
      pool: of,
      schema: `lines_${schemas}`,
      random: systemRandom,
      timers: systemTimers,
      patienceMs: 2_000,
      // Only the general path has a COMMIT to lose; the statement that commits by itself is in hot-path.test.ts.
      hot: "never",
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
    "%j: it is written once, and the answer is right [S0-104]",
    async (list) => {
      faults.push(...list);
      const result = await engine.commit("acme", change([insert("a")]));
      expect(faults, "all of it happened").toEqual([]);
      expect(result).toMatchObject({ committed: true, seq: 1 });
      expect(await engine.get("acme", DECISIONS, "a")).toBeDefined();
      expect(await soundTrail(engine)).toHaveLength(1);
    },
  );

  test("a lost COMMIT is not taken for ours when another process has written the entry with its number [B13]", async () => {
    const other = await openEngine(pool);
    meanwhile = async () => {
      meanwhile = async () => {};
      await other.commit("acme", change([insert("b")]));
    };
    faults.push("COMMIT is lost");
    const result = await engine.commit("acme", change([insert("a")]));
    expect(faults, "it happened").toEqual([]);
    expect(result).toMatchObject({ committed: true, seq: 2 });
    expect(await engine.get("acme", DECISIONS, "a")).toBeDefined();
    expect((await soundTrail(engine)).map(({ subject }) => subject)).toEqual(["b", "a"]);
    await other.close();
  });

  test("a read whose connection the server has cut is retried until a connection is alive [R11]", async () => {
    await engine.commit("acme", change([insert("a")]));
    const reads = () => [
      engine.get("acme", DECISIONS, "a"),
      // Each on a connection of its own.
      ...Array.from({ length: 5 }, () => engine.heads()),
    ];
    // A line that is slow to open leaves its read to another one.
    const opened = expect.poll(async () => (await Promise.all(reads())) && pool.idleCount);
    await opened.toBeGreaterThan(3);
    expect(cutUnnoticed(database.url)).toBeGreaterThan(3);
    expect(await Promise.all(reads())).toHaveLength(6);
    expect((await engine.commit("acme", change([insert("b")]))).committed).toBe(true);
  });

  test("records that were requested together are requested again when the connection goes dead [R11]", async () => {
    await engine.commit("acme", change([insert("a")]));
    faults.push("get is lost", "get is lost");
    const found = await Promise.all(["a", "nobody"].map((id) => engine.get("acme", DECISIONS, id)));
    expect(faults, "all of it happened").toEqual([]);
    expect(found.map((row) => row?.["id"])).toEqual(["a", undefined]);
  });

  test("the refusal of one tenant's change does not prove that another tenant's was written", async () => {
    await engine.commit("acme", change([insert("a")]));
    faults.push("COMMIT is lost");
    const [refused, written] = await Promise.all([
      engine.commit("acme", change([insert("a")])),
      engine.commit("globex", change([insert("b")])),
    ]);
    expect(faults, "it happened").toEqual([]);
    expect([refused.committed, written.committed]).toEqual([false, true]);
    expect(await engine.get("globex", DECISIONS, "b"), "it was acknowledged").toBeDefined();
    expect(await soundTrail(engine, "globex")).toHaveLength(1);
  });
});

/** Has the server cut all lines while this thread sleeps, so that nothing here has heard of it yet; how many there were. */
function cutUnnoticed(url: string): number {
  const cut = new Int32Array(new SharedArrayBuffer(4));
  const body = `
    const { workerData } = require("node:worker_threads");
    const { Client } = require("pg");
    (async () => {
      const client = new Client({ connectionString: workerData.url });
      await client.connect();
      const { rowCount } = await client.query("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()");
      await client.end();
      Atomics.store(workerData.cut, 0, rowCount);
      Atomics.notify(workerData.cut, 0);
    })();`;
  new Worker(body, { eval: true, workerData: { url, cut } });
  Atomics.wait(cut, 0, 0, 10_000);
  return Atomics.load(cut, 0);
}
