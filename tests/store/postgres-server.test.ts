// What a PostgreSQL server is allowed to be and to do: asynchronous, upgraded, forgetful, strict about rights.

import { randomUUID } from "node:crypto";
import pg from "pg";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { DECISIONS } from "../../src/model/decision.ts";
import { change, insert, soundTrail, take, update } from "../../src/store/conformance/samples.ts";
import { postgresStore, serverFindings } from "../../src/store/postgres/index.ts";
import { createStore } from "../../src/store/store.ts";
import { createTaskList } from "../../src/tasks/create-task-list.ts";
import type { JsonObject } from "../../src/util/json.ts";
import { endPool } from "../support/postgres-connections.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { engineAt, openEngine, SCHEMA, watchedPool } from "../support/postgres-engine.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { refusal } from "../support/staging.ts";
import { isWanted } from "../support/stores.ts";

function openPool(url: string, over: { max?: number; user?: string } = {}): pg.Pool {
  const address = new URL(url);
  if (over.user !== undefined) address.username = over.user;
  const pool = new pg.Pool({ connectionString: address.href, max: over.max ?? 4, pipeline: true });
  pool.on("error", () => {});
  onTestFinished(() => endPool(pool));
  return pool;
}

const redact = (_: string, data: JsonObject) => data;
const nameOf = (url: string) => new URL(url).pathname.slice(1);

// skip: STORES names the stores to test, and this is not one of them
describe.skipIf(!isWanted("postgres"))("postgres: the server", () => {
  test("acknowledged commits survive a crash even if the database turns synchronous_commit off [SH2]", async () => {
    const server = await startPostgres({ durable: true });
    onTestFinished(() => server.stop());
    const admin = openPool(server.url);
    await admin.query("ALTER DATABASE postgres SET synchronous_commit = off");
    await admin.query("ALTER SYSTEM SET wal_writer_delay = '10s'");
    await admin.query("SELECT pg_reload_conf()");
    const { engine } = await engineAt(server.url);
    const acknowledged: string[] = [];
    for (let n = 0; n < 60; n += 1) {
      await engine.commit("acme", change([insert(`d-${n}`)]));
      acknowledged.push(`d-${n}`);
    }
    await server.crash("SIGKILL");
    await server.startAgain();
    const found = await engine.find("acme", DECISIONS, { limit: 100 });
    expect(found.map(({ id }) => id)).toEqual(acknowledged);
  }, 100_000);

  test("a server with fsync off is refused, unless its database accepts the loss of data [SH2]", async () => {
    const database = await freshDatabase(inject("pgUrl"));
    onTestFinished(() => database.drop());
    const pool = openPool(database.url);
    const { rows } = await pool.query("SHOW fsync");
    const accept = (on: "on" | "off") =>
      pool.query(
        `ALTER DATABASE ${nameOf(database.url)} SET sallyport.accept_unsafe_server = ${on}`,
      );
    await accept("off");
    const strict = openPool(database.url);
    const opening = postgresStore({ pool: strict });
    if (rows[0]?.fsync === "on") return (await opening).close();
    const error = await refusal("store_incompatible", opening);
    expect(error.details.hint).toMatch(/fsync.*off.*Turn it on/);
    const [, durability] = await serverFindings(strict);
    expect(durability).toMatchObject({ ok: false, text: expect.stringMatching(/fsync/) });
    await accept("on");
    await (await postgresStore({ pool: openPool(database.url) })).close();
  });

  test("a column that a newer version adds under a running process changes nothing for it [SH5]", async () => {
    const { engine, pool } = await openEngine();
    const list = createTaskList({ store: createStore(engine, { redact }).tenant("tasks").tasks });
    const everything = async (nr: number) => {
      const id = (name: string) => `${name}-${nr}`;
      await list.add({ subject: id("task") });
      const task = await list.claimNext({ claimer: "worker", leaseMs: 60_000 });
      expect(task?.subject).toBe(id("task"));
      for (const name of ["a", "b"]) await engine.commit("t", change([insert(id(name))]));
      await engine.commit("t", change([update(id("a"), { state: "pending_tech" }, { asked: 1 })]));
      const required = { op: "require", table: DECISIONS, id: id("a"), where: {} } as const;
      await engine.commit(
        "t",
        change([{ ...required, absent: "refuses" }, update(id("b"), {}, { asked: 2 })]),
      );
      const taken = await engine.commit("t", change([take({ where: { asked: 2 } })]));
      expect(taken).toMatchObject({ committed: true, rows: [{ id: id("b") }] });
      await engine.commit(
        "t",
        change([{ op: "delete", table: DECISIONS, id: id("b"), where: {} }]),
      );
      const found = await engine.get("t", DECISIONS, id("a"));
      expect(Object.keys(found ?? {}), "and no cell of it is handed out").not.toContain("extra");
      return (await engine.find("t", DECISIONS, { limit: 100 })).map((row) => row["id"]);
    };
    expect(await everything(1)).toEqual(["a-1"]);
    const { rows } = await pool.query(
      `SELECT table_name FROM information_schema.tables WHERE table_schema = '${SCHEMA}'`,
    );
    for (const { table_name } of rows) {
      await pool.query(`ALTER TABLE ${SCHEMA}.${table_name} ADD COLUMN extra text DEFAULT 'new'`);
    }
    expect(await everything(2)).toEqual(["a-1", "a-2"]);
    expect(await soundTrail(engine, "t")).toHaveLength(12);
  });

  test.each([
    ["lost its prepared statements", "DEALLOCATE ALL"],
    ["leads to a server that only reads", "SET default_transaction_read_only = on"],
  ])(
    "a connection that %s is dropped, and the call continues over another [SH5]",
    async (_, sql) => {
      const { engine, clients } = await openEngine();
      await engine.commit("acme", change([insert("a")]));
      await Promise.all([1, 2, 3].map(() => engine.get("acme", DECISIONS, "a")));
      for (const client of clients) await client.query(sql).catch(() => {});
      expect((await engine.get("acme", DECISIONS, "a"))?.["id"]).toBe("a");
      expect((await engine.commit("acme", change([insert("b")]))).committed).toBe(true);
    },
  );

  test("an entry that only this server has is not taken for committed while a standby must have it too [SL3]", async () => {
    const server = await startPostgres({ durable: true });
    onTestFinished(() => server.stop());
    const admin = openPool(server.url);
    const { engine } = await engineAt(server.url);
    await engine.commit("acme", change([insert("a")]));
    await admin.query("ALTER SYSTEM SET synchronous_standby_names = 'away'");
    await admin.query("SELECT pg_reload_conf()");
    await expect
      .poll(async () => (await admin.query("SHOW synchronous_standby_names")).rows[0])
      .toEqual({
        synchronous_standby_names: "away",
      });
    const committing = engine.commit("acme", change([insert("b")])).catch(({ code }) => code);
    const waiting =
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    await expect.poll(async () => (await admin.query(waiting)).rowCount).toBeGreaterThan(0);
    expect(await committing).toBe("commit_unknown");
    await admin.query("ALTER SYSTEM RESET synchronous_standby_names");
    await admin.query("SELECT pg_reload_conf()");
  }, 100_000);

  const FAILURES = [
    ["58030", "PANIC"],
    ["XX000", "ERROR"],
    ["57P01", "FATAL"],
    ["53100", "ERROR"],
  ] as const;
  test.each(FAILURES)(
    "a COMMIT that fails with %s and was written is reported as written [SM1]",
    async (code, severity) => {
      let isArmed = false;
      const { engine } = await openEngine({
        hot: "never",
        watch: (pool) =>
          watchedPool(pool, ({ text }, ask) => {
            if (!isArmed || text !== "COMMIT") return undefined;
            isArmed = false;
            return ask().then(() => {
              throw Object.assign(new Error("could not fsync file"), { code, severity });
            });
          }),
      });
      await engine.commit("acme", change([insert("a")]));
      isArmed = true;
      expect(await engine.commit("acme", change([insert("b")]))).toMatchObject({ committed: true });
      expect(isArmed, "void: no COMMIT failed").toBe(false);
      expect(await soundTrail(engine)).toHaveLength(2);
    },
  );

  test("a failed COMMIT whose outcome cannot be found out is commit_unknown [SM1]", async () => {
    let state: "opening" | "armed" | "away" = "opening";
    const away = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
    const { engine } = await openEngine({
      watch: (pool) => {
        const watched = watchedPool(pool, ({ text }) => {
          if (state === "away") return Promise.reject(away);
          if (state !== "armed" || text !== "COMMIT") return undefined;
          state = "away";
          const panic = { code: "58030", severity: "PANIC" };
          return Promise.reject(Object.assign(new Error("could not fsync file"), panic));
        });
        const connect = () => (state === "away" ? Promise.reject(away) : watched.connect());
        return { ...watched, connect };
      },
    });
    state = "armed";
    const error = await refusal("commit_unknown", engine.commit("acme", change([insert("a")])));
    expect(error.retry).toBe("ask_a_person");
  });

  test("a role that may only read and write rows opens and writes a store that its owner made, and cannot rewrite the trail [SM9]", async () => {
    const { url, engine, pool } = await openEngine();
    await engine.commit("acme", change([insert("a")]));
    const role = `app_${randomUUID().slice(0, 8)}`;
    await pool.query(`CREATE ROLE ${role} LOGIN`);
    onTestFinished(async () => {
      await pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    });
    await pool.query(`GRANT USAGE ON SCHEMA ${SCHEMA} TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${SCHEMA} TO ${role};
      REVOKE UPDATE, DELETE ON ${SCHEMA}.audit_blocks FROM ${role}`);
    const own = openPool(url, { user: role });
    const store = await postgresStore({ pool: own });
    await store.tenant("acme").killSwitch.stop("least privilege", { actor: "op" });
    expect((await store.tenant("acme").audit.head()).seq).toBe(2);
    await store.close();
    await expect(own.query(`DELETE FROM ${SCHEMA}.audit_blocks`)).rejects.toThrow(
      /permission denied/,
    );
  });

  test("an auditor who may only read opens the store to be read; writing is refused, with the reason [SM9]", async () => {
    const { url, engine, pool } = await openEngine();
    await engine.commit("acme", change([insert("a")]));
    const role = `auditor_${randomUUID().slice(0, 8)}`;
    await pool.query(`CREATE ROLE ${role} LOGIN`);
    onTestFinished(async () => {
      await pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    });
    await pool.query(`GRANT USAGE ON SCHEMA ${SCHEMA} TO ${role};
      GRANT SELECT ON ALL TABLES IN SCHEMA ${SCHEMA} TO ${role}`);
    const own = openPool(url, { user: role });
    const reading = await postgresStore({ pool: own, readOnly: true });
    expect(await reading.tenant("acme").audit.read({ after: 0, limit: 9 })).toHaveLength(1);
    const stopping = reading.tenant("acme").killSwitch.stop("no", { actor: "op" });
    expect((await refusal("not_allowed", stopping)).details.hint).toMatch(/opened to be read/);
    await reading.close();
    const writing = await postgresStore({ pool: own });
    const denied = writing.tenant("acme").killSwitch.stop("no", { actor: "op" });
    expect((await refusal("store_unavailable", denied)).details.hint).toMatch(/lacks a privilege/);
    await writing.close();
    const elsewhere = postgresStore({ pool: own, schema: "not_there" });
    expect((await refusal("store_unavailable", elsewhere)).details.hint).toMatch(
      /lacks a privilege/,
    );
    const missing = postgresStore({ pool: own, schema: "not_there", readOnly: true });
    expect((await refusal("store_incompatible", missing)).details.hint).toMatch(/store migrate/);
  });

  test.each([1, 2])("a pool of %d connections is refused with a hint [SM9]", async (max) => {
    const pool = openPool(inject("pgUrl"), { max });
    const error = await refusal("invalid_input", postgresStore({ pool }));
    expect(error.details.hint).toMatch(/at least 3/);
  });

  test("a database with a language's collation is reported, with what to do [SL9]", async () => {
    const admin = openPool(inject("pgUrl"));
    const name = `collated_${randomUUID().slice(0, 8)}`;
    await admin.query(
      `CREATE DATABASE ${name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de-DE'`,
    );
    onTestFinished(async () => {
      await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    });
    const url = new URL(inject("pgUrl"));
    url.pathname = `/${name}`;
    const of = async (address: string) =>
      (await serverFindings(openPool(address))).find(({ what }) => what === "postgres collation");
    expect(await of(url.href)).toMatchObject({ text: expect.stringMatching(/^de-DE.*LOCALE 'C'/) });
    const plain = await freshDatabase(inject("pgUrl"));
    onTestFinished(() => plain.drop());
    expect(await of(plain.url)).toMatchObject({ ok: true, text: "C" });
    await admin.query(`UPDATE pg_database SET datcollversion = '1.2.3' WHERE datname = '${name}'`);
    expect(await of(url.href)).toMatchObject({
      ok: false,
      text: expect.stringMatching(/REINDEX/),
    });
  });
});
