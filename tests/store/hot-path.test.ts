// One statement for a whole group on PostgreSQL: the same as the general path, and right when its answer is lost.

import { randomUUID } from "node:crypto";
import pg from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { change, insert, soundTrail } from "../../src/store/conformance/samples.ts";
import type { Engine } from "../../src/store/engine.ts";
import type { PgPool, PgQuery } from "../../src/store/postgres/connection.ts";
import { postgresEngine } from "../../src/store/postgres/index.ts";
import { ClockWatch } from "../../src/store/turn.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { endPool } from "../support/postgres-connections.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { watchedPool } from "../support/postgres-engine.ts";
import { scaled } from "../support/scale.ts";
import {
  luckOf,
  type MovedClock,
  SAME_SALTS,
  storedIn,
  storiesOf,
  writtenAlike,
} from "./hot-oracle.ts";

const CALL = /^SELECT [a-z_]+\.commit_/;
const CHANGES = scaled({ test: 2_000, proof: 10_000, full: 100_000 });
/** Changes per group: larger ones are quicker, and more of them have a member that does not hold. */
const MOST = scaled({ test: 16, proof: 24, full: 48 });
const TENANTS = 3;
const CALLS = 30;

interface Opened {
  readonly url: string;
  readonly client: pg.Client;
  open(
    over?: Partial<Parameters<typeof postgresEngine>[0]>,
    watch?: Watch,
    address?: string,
  ): Promise<Engine>;
}
type Watch = (query: PgQuery, ask: () => Promise<unknown>) => Promise<unknown> | undefined;

/** A database; every engine has a pool of its own and the schema `tested` unless told otherwise. */
async function opened(): Promise<Opened> {
  const database = await freshDatabase(inject("pgUrl"));
  onTestFinished(() => database.drop());
  const client = new pg.Client(database.url);
  await client.connect();
  onTestFinished(() => client.end());
  return {
    url: database.url,
    client,
    async open(over = {}, watch = () => undefined, address = database.url) {
      const options = { connectionString: address, max: 4, pipeline: true };
      const pool = new pg.Pool(options).on("error", () => {});
      onTestFinished(() => endPool(pool));
      const parts = { random: systemRandom, timers: systemTimers, patienceMs: 4_000 };
      const watched: PgPool = watchedPool(pool, watch);
      const engine = await postgresEngine({ pool: watched, schema: "tested", ...parts, ...over });
      onTestFinished(() => engine.close());
      return engine;
    },
  };
}

function movedClock(): MovedClock {
  const clock = { time: Date.parse("2026-11-18T08:00:00.000Z"), now: () => clock.time };
  return clock;
}

const one = (id: string) => change([insert(id)]);

test(`${CHANGES} random changes leave the same rows, entries, answers and refusals as the general path`, {
  timeout: 3_000_000,
}, async () => {
  const { client, open } = await opened();
  const clock = movedClock();
  let statements = 0;
  const counted: Watch = ({ text }) => {
    if (CALL.test(text)) statements += 1;
    return undefined;
  };
  const tested = await open({ clock, random: SAME_SALTS }, counted);
  const oracle = await open({ clock, random: SAME_SALTS, schema: "oracle", hot: "never" });
  let changes = 0;
  for (let seed = 1; changes < CHANGES; seed += 1) {
    const luck = luckOf(seed * 7_919);
    const tenants = Array.from({ length: TENANTS }, (_, nr) => `t-${seed}-${nr}`);
    const stories = await storiesOf(tenants, CALLS, { clock, luck });
    changes += await writtenAlike(stories, { tested, oracle, clock, luck, most: MOST });
  }
  const [is, should] = [await storedIn(client, "tested"), await storedIn(client, "oracle")];
  for (const [name, rows] of should) expect(is.get(name), name).toEqual(rows);
  expect(should.get("operations")?.length).toBeGreaterThan(CHANGES / 20);
  // Most groups have a member that does not hold; the others are one statement each.
  expect(statements).toBeGreaterThan(CHANGES / 50);
});

test("the changes of many callers and tenants are one statement, which commits", async () => {
  const { open } = await opened();
  const sent: string[] = [];
  const engine = await open({}, ({ text }) => {
    if (/^(BEGIN|COMMIT)/.test(text)) sent.push(text);
    if (CALL.test(text)) sent.push("statement");
    return undefined;
  });
  await engine.commit("acme", one("a"));
  await engine.commit("globex", one("a"));
  sent.length = 0;
  const many = Array.from({ length: 20 }, (_, nr) => (nr % 2 === 0 ? "acme" : "globex"));
  const results = await Promise.all(
    many.map((tenant, nr) => engine.commit(tenant, one(`b-${nr}`))),
  );
  expect(sent).toEqual(["statement"]);
  expect(results.every(({ committed }) => committed)).toBe(true);
  for (const tenant of ["acme", "globex"])
    expect(await soundTrail(engine, tenant)).toHaveLength(11);
});

/** Cuts the line of the first statements: before the server has them, or after it has answered. */
function cutting(faults: ("lost" | "answer lost")[], meanwhile = async () => {}): Watch {
  return (query, ask) => {
    const fault = CALL.test(query.text) ? faults.shift() : undefined;
    if (fault === undefined) return undefined;
    return (async () => {
      if (fault === "answer lost") await ask();
      await meanwhile();
      throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
    })();
  };
}

test.each([[["lost"]], [["answer lost"]], [["lost", "lost", "answer lost"]]] as const)(
  "%j: a statement whose answer does not come is written once, and its result is right",
  async (faults) => {
    const { open } = await opened();
    const left = [...faults];
    const engine = await open({}, cutting(left));
    await engine.commit("acme", one("a"));
    const result = await engine.commit("acme", one("b"));
    expect(left).toEqual([]);
    expect(result).toMatchObject({ committed: true, seq: 2, rows: [{ id: "b", asked: 0 }] });
    const trail = await soundTrail(engine);
    expect(trail.map(({ subject }) => subject)).toEqual(["a", "b"]);
    expect(result).toMatchObject({ hash: trail[1]?.hash, at: Date.parse(trail[1]?.at ?? "") });
    expect((await engine.commit("acme", one("c"))).committed).toBe(true);
  },
);

test.each([
  ["58030", "PANIC"],
  ["XX000", "FATAL"],
  ["XX000", "SCHWERER FEHLER"],
  ["57P01", "FATAL"],
])(
  "a statement that fails with %s, %s, and was written is reported as written [SM1]",
  async (code, severity) => {
    const { open } = await opened();
    let failed = 0;
    const engine = await open({}, ({ text }, ask) => {
      if (!CALL.test(text) || failed > 0) return undefined;
      failed += 1;
      return ask().then(() => {
        throw Object.assign(new Error("could not fsync file"), { code, severity });
      });
    });
    await engine.commit("acme", one("a"));
    expect(await engine.commit("acme", one("b"))).toMatchObject({ committed: true, seq: 2 });
    expect(failed, "void: no statement failed").toBe(1);
    expect((await soundTrail(engine)).map(({ subject }) => subject)).toEqual(["a", "b"]);
  },
);

test("a statement that reaches the server after it was given up is refused", async () => {
  const { client, open } = await opened();
  const late: PgQuery[] = [];
  const engine = await open({}, (query) => {
    if (!CALL.test(query.text) || late.length > 0) return undefined;
    late.push(query);
    return Promise.reject(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
  });
  await engine.commit("acme", one("a"));
  expect(await engine.commit("acme", one("b"))).toMatchObject({ committed: true, seq: 2 });
  // The same change was written since; a statement that could still be written is made of it.
  const [query] = late;
  const other = query?.values?.map((value) =>
    typeof value === "string" ? value.replaceAll('"id":"b"', '"id":"z"') : value,
  );
  const arrives = client.query(query?.text ?? "", [...(other ?? [])]);
  await expect(arrives).rejects.toThrow("an older fence");
  expect((await soundTrail(engine)).map(({ subject }) => subject)).toEqual(["a", "b"]);
  expect(await engine.commit("acme", one("c"))).toMatchObject({ committed: true, seq: 3 });
});

test("a result is not made up when its record was changed before it could be looked up", async () => {
  const { client, open } = await opened();
  const meanwhile = async () => {
    await client.query("UPDATE tested.decisions SET state = 'failed' WHERE id = 'b'");
  };
  const engine = await open({}, cutting(["answer lost"], meanwhile));
  await engine.commit("acme", one("a"));
  await expect(engine.commit("acme", one("b"))).rejects.toMatchObject({ code: "commit_unknown" });
  expect((await soundTrail(engine)).map(({ subject }) => subject)).toEqual(["a", "b"]);
});

test("a clock that jumped is noticed before the commit, not after it", async () => {
  const { open } = await opened();
  const time = { elapsed: 0, elapsedMs: () => time.elapsed, uptimeMs: () => time.elapsed };
  const engine = await open({ clockWatch: new ClockWatch(time) });
  await engine.commit("acme", one("a"));
  expect((await engine.commit("acme", one("b"))).committed).toBe(true);
  // An hour passes here and none on the server: its clock was put back.
  time.elapsed += 3_600_000;
  await expect(engine.commit("acme", one("c"))).rejects.toMatchObject({ code: "clock_wrong" });
  expect(await soundTrail(engine)).toHaveLength(2);
});

test("a trail that lost what this process saw of it is noticed before the commit", async () => {
  const { client, open } = await opened();
  const engine = await open();
  for (const id of ["a", "b"]) await engine.commit("acme", one(id));
  await client.query("DELETE FROM tested.audit_blocks WHERE tenant = 'acme' AND last = 2");
  // Others have written since, with the same number of entries.
  await (await open()).commit("acme", one("other"));
  expect((await engine.commit("acme", one("c"))).committed).toBe(true);
  expect(engine.lostTail?.("acme")).toMatchObject({ code: "store_rolled_back" });
});

test("it does not depend on the isolation that the database or the role prefers", async () => {
  const { client, open } = await opened();
  const { rows } = await client.query("SELECT current_database() AS name");
  const name = rows[0]?.name;
  await client.query(`ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'`);
  let statements = 0;
  const engine = await open({}, ({ text }) => {
    if (CALL.test(text)) statements += 1;
    return undefined;
  });
  for (const id of ["a", "b", "c"]) await engine.commit("acme", one(id));
  expect(statements).toBe(2);
  expect((await soundTrail(engine)).length).toBe(3);
});

test("a role that may only read and write rows may call it, and cannot do more with it [SM9]", async () => {
  const { client, url, open } = await opened();
  await (await open()).commit("acme", one("a"));
  const role = `app_${randomUUID().slice(0, 8)}`;
  await client.query(`CREATE ROLE ${role} LOGIN`);
  onTestFinished(async () => {
    await client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });
  await client.query(`GRANT USAGE ON SCHEMA tested TO ${role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tested TO ${role};
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tested TO ${role};
    REVOKE UPDATE, DELETE ON tested.audit_blocks, tested.audit_entries FROM ${role}`);
  let statements = 0;
  const counted: Watch = ({ text }) => {
    if (CALL.test(text)) statements += 1;
    return undefined;
  };
  const address = new URL(url);
  address.username = role;
  const engine = await open({}, counted, address.href);
  for (const id of ["b", "c"]) expect((await engine.commit("acme", one(id))).committed).toBe(true);
  expect(statements).toBe(1);
  await client.query(`REVOKE INSERT ON tested.audit_blocks FROM ${role}`);
  await expect(engine.commit("acme", one("d"))).rejects.toMatchObject({
    code: "store_unavailable",
  });
  expect(await soundTrail(engine)).toHaveLength(3);
});

test("without its function everything is written by the general path", async () => {
  const { client, open } = await opened();
  const sent: string[] = [];
  const engine = await open({}, ({ text }) => {
    if (CALL.test(text)) sent.push("statement");
    if (text === "COMMIT") sent.push(text);
    return undefined;
  });
  await engine.commit("acme", one("a"));
  const { rows } = await client.query(
    "SELECT oid::regprocedure::text AS name FROM pg_proc WHERE pronamespace = 'tested'::regnamespace",
  );
  for (const { name } of rows) await client.query(`DROP FUNCTION ${name}`);
  sent.length = 0;
  for (const id of ["b", "c"]) expect((await engine.commit("acme", one(id))).committed).toBe(true);
  expect(sent).toEqual(["statement", "COMMIT", "COMMIT"]);
});
