import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from "vitest";
import { DECISIONS } from "../../src/model/decision.ts";
import { SallyportError } from "../../src/model/errors.ts";
import { change, insert, soundTrail, update } from "../../src/store/conformance/samples.ts";
import type { Engine } from "../../src/store/engine.ts";
import { isCutLine, isServerAnswer, Lines } from "../../src/store/postgres/connection.ts";
import { postgresEngine, postgresStore } from "../../src/store/postgres/index.ts";
import { MIGRATIONS, migrate } from "../../src/store/postgres/schema.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { breakableLine } from "../faults/breakable-line.ts";
import { endPool } from "../support/postgres-connections.ts";
import { type FreshDatabase, freshDatabase } from "../support/postgres-database.ts";
import { refusal } from "../support/staging.ts";
import { isWanted } from "../support/stores.ts";

const VERSIONS = MIGRATIONS.map(({ version }) => ({ version }));

// skip: STORES names the stores to test, and this is not one of them
describe.skipIf(!isWanted("postgres"))("postgres", () => {
  let database: FreshDatabase;
  let pool: pg.Pool;
  beforeAll(async () => {
    database = await freshDatabase(inject("pgUrl"));
  });
  afterAll(() => database.drop());
  beforeEach(() => {
    pool = new pg.Pool({ connectionString: database.url, max: 6, pipeline: true }).on(
      "error",
      () => {},
    );
  });
  afterEach(() => endPool(pool));

  let schemas = 0;
  const openEngine = async (): Promise<Engine> => {
    schemas += 1;
    const parts = { random: systemRandom, timers: systemTimers, patienceMs: 2_000 };
    return postgresEngine({ pool, schema: `errors_${schemas}`, ...parts });
  };

  describe("opening", () => {
    test("a missing server is store_unavailable, immediately and with a hint", async () => {
      const nobody = new pg.Pool({ connectionString: "postgres://postgres@127.0.0.1:1/postgres" });
      const started = performance.now();
      const error = await refusal("store_unavailable", postgresStore({ pool: nobody }));
      expect(performance.now() - started).toBeLessThan(3_000);
      expect(error.details.hint).toMatch(/PostgreSQL runs/);
      expect(error.cause).toBeInstanceOf(Error);
      await nobody.end();
    });

    test.each(["", "Upper", "a-b", "a b", "1st", 'x"; DROP SCHEMA public; --', "x".repeat(64)])(
      "the schema name %j is invalid_input, before the server is asked",
      async (schema) => {
        const asked = { connect: () => expect.fail("asked"), query: () => expect.fail("asked") };
        const error = await refusal("invalid_input", postgresStore({ pool: asked, schema }));
        expect(error.details.hint).toMatch(/lower-case/);
      },
    );

    test("a schema of a newer version is store_incompatible and stays as it is", async () => {
      await (await openEngine()).close();
      const table = `errors_${schemas}.schema_version`;
      await pool.query(`INSERT INTO ${table} VALUES (9999, 'from the future')`);
      const opening = postgresStore({ pool, schema: `errors_${schemas}` });
      const error = await refusal("store_incompatible", opening);
      expect(error.details).toMatchObject({ schema: 9999, hint: expect.stringMatching(/upgrade/) });
      const { rows } = await pool.query(`SELECT version::int FROM ${table} ORDER BY version`);
      expect(rows).toEqual([...VERSIONS, { version: 9999 }]);
    });

    test.each(["hints", "h".repeat(63)])(
      "a commit of one engine wakes another one over the schema %s",
      async (schema) => {
        const parts = { random: systemRandom, timers: systemTimers, patienceMs: 2_000 };
        const [one, other] = [
          await postgresEngine({ pool, schema, ...parts }),
          await postgresEngine({ pool, schema, ...parts }),
        ];
        const { promise: told, resolve } = Promise.withResolvers<void>();
        other.onCommit(resolve);
        // Listening begins in the background, so a first hint may come too early to be heard.
        let rows = 0;
        const writing = setInterval(() => {
          rows += 1;
          void one.commit("acme", change([insert(`d-${rows}`)]));
        }, 100);
        await told.finally(() => clearInterval(writing));
        await one.close();
        await other.close();
      },
    );

    test("many processes that open an empty database concurrently migrate it once", async () => {
      const stores = await Promise.all(
        Array.from({ length: 5 }, () => postgresStore({ pool, schema: "shared" })),
      );
      const { rows } = await pool.query(
        "SELECT version::int FROM shared.schema_version ORDER BY 1",
      );
      expect(rows).toEqual(VERSIONS);
      for (const store of stores) await store.close();
    });

    test("a store of an earlier version runs only the migrations it lacks, once, and a newer one is refused", async () => {
      const lines = new Lines({ pool, timers: systemTimers });
      const options = { schema: "earlier", patienceMs: 2_000, readOnly: false };
      await migrate(lines, options);
      const version = MIGRATIONS.length + 1;
      const sql = "ALTER TABLE $schema.grants ADD COLUMN extra text";
      const migrations = [...MIGRATIONS, { version, name: "next", sql }];
      const upToDate = refusal(
        "store_incompatible",
        migrate(lines, { ...options, migrations, readOnly: true }),
      );
      expect((await upToDate).details.hint).toMatch(/store migrate/);
      await Promise.all([1, 2, 3].map(() => migrate(lines, { ...options, migrations })));
      await migrate(lines, { ...options, migrations, readOnly: true });
      const { rows } = await pool.query(
        "SELECT version::int FROM earlier.schema_version ORDER BY 1",
      );
      expect(rows).toEqual([...VERSIONS, { version }]);
      const newer = await refusal("store_incompatible", migrate(lines, options));
      expect(newer.details).toMatchObject({ schema: version, known: MIGRATIONS.at(-1)?.version });
    });
  });

  test("when the trail cannot be written no state changes; reads continue, and writes do after the repair [T36 I16 S0-104]", async () => {
    const engine = await openEngine();
    await engine.commit("acme", change([insert("a")]));
    await pool.query(
      `ALTER TABLE errors_${schemas}.audit_blocks ADD CONSTRAINT down CHECK (false) NOT VALID`,
    );
    const move = change([update("a", {}, { state: "failed" }), insert("b")]);
    const error = await engine.commit("acme", move).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SallyportError);
    expect((await engine.get("acme", DECISIONS, "a"))?.["state"]).toBe("pending_tech");
    expect(await engine.get("acme", DECISIONS, "b")).toBeUndefined();
    await pool.query(`ALTER TABLE errors_${schemas}.audit_blocks DROP CONSTRAINT down`);
    expect((await engine.commit("acme", move)).committed).toBe(true);
    expect(await soundTrail(engine)).toHaveLength(2);
    await engine.close();
  });

  test("connections that the server ends are replaced: writes, reads and listening continue", async () => {
    const engine = await openEngine();
    engine.onCommit(() => {});
    await engine.commit("acme", change([insert("a")]));
    await pool.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
    expect((await engine.commit("acme", change([insert("b")]))).committed).toBe(true);
    expect((await engine.find("acme", DECISIONS, { limit: 9 })).length).toBe(2);
    expect(await soundTrail(engine)).toHaveLength(2);
    await engine.close();
  });

  test("reads in flight when the connection drops are retried; if no connection works, only their callers get an error [R11]", async () => {
    const engine = await openEngine();
    await engine.commit("acme", change([insert("a")]));
    const schema = `errors_${schemas}`;
    const address = new URL(database.url);
    const line = await breakableLine({ host: address.hostname, port: Number(address.port) });
    address.port = String(line.port);
    const far = new pg.Pool({ connectionString: address.href, pipeline: true });
    const parts = { random: systemRandom, timers: systemTimers, patienceMs: 2_000 };
    const reader = await postgresEngine({ pool: far, schema, ...parts });
    const waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    /** Requests records that are locked, and breaks the connection meanwhile. */
    const askedAcross = async (breakIt: () => unknown) => {
      const holder = await pool.connect();
      await holder.query(`BEGIN; LOCK TABLE ${schema}.decisions`);
      const asked = Promise.allSettled(["a", "b"].map((id) => reader.get("acme", DECISIONS, id)));
      await expect.poll(async () => (await pool.query(waiting)).rows).toHaveLength(1);
      await breakIt();
      await holder.query("ROLLBACK");
      holder.release();
      return asked;
    };
    expect(await askedAcross(() => line.cut("reset"))).toMatchObject([
      { status: "fulfilled", value: { id: "a" } },
      { status: "fulfilled", value: undefined },
    ]);
    for (const answer of await askedAcross(() => line.close())) {
      expect(answer).toMatchObject({ reason: { code: "store_unavailable" } });
    }
    await reader.close();
    await far.end();
    expect(await engine.get("acme", DECISIONS, "a")).toBeDefined();
    await engine.close();
  });
});

test.each(["EPIPE", "ECONNRESET", "57P01", "08006", undefined])(
  "postgres: the error code %s does not mean that the server answered",
  (code) => {
    expect(isServerAnswer(Object.assign(new Error("broken"), { code }))).toBe(false);
  },
);

test.each(["23514", "22P05", "40001", "XX000"])("postgres: the error code %s does", (code) => {
  expect(isServerAnswer(Object.assign(new Error("refused"), { code, severity: "ERROR" }))).toBe(
    true,
  );
});

const broken = (message: string, more: object = {}) => Object.assign(new Error(message), more);
test.each([
  ["the server ended it", broken("x", { code: "57P01", severity: "FATAL" }), true],
  ["the server went down", broken("x", { code: "57P02", severity: "FATAL" }), true],
  ["it was reset", broken("x", { code: "ECONNRESET" }), true],
  ["nobody reads any more", broken("x", { code: "EPIPE" }), true],
  ["it ended without a word", broken("Connection terminated unexpectedly"), true],
  ["nobody is there", broken("x", { code: "ECONNREFUSED" }), false],
  ["the server starts", broken("x", { code: "57P03", severity: "FATAL" }), false],
  ["somebody cancelled the query", broken("x", { code: "57014", severity: "ERROR" }), false],
  ["it is no error at all", "ECONNRESET", false],
] as const)(
  "postgres: %s: whether a read may be retried over another connection [R11]",
  (_, error, may) => {
    expect(isCutLine(error)).toBe(may);
  },
);
