// A real server whose clock is wrong for a while, and one with a long snapshot open.

import pg from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { change, insert } from "../../src/store/conformance/samples.ts";
import { createStore } from "../../src/store/store.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { engineAt, SCHEMA } from "../support/postgres-engine.ts";

/** A database whose clock can be put forward or back: ours comes before the server's own. */
async function movable() {
  const database = await freshDatabase(inject("pgUrl"));
  onTestFinished(() => database.drop());
  const client = new pg.Client(database.url);
  await client.connect();
  onTestFinished(() => client.end());
  await client.query(`CREATE SCHEMA tricks;
CREATE TABLE tricks.off (by interval);
INSERT INTO tricks.off VALUES ('0');
CREATE FUNCTION tricks.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
  AS 'SELECT pg_catalog.clock_timestamp() + by FROM tricks.off';`);
  const name = new URL(database.url).pathname.slice(1);
  await client.query(`ALTER DATABASE ${name} SET search_path = tricks, pg_catalog, public`);
  const moveBy = (by: string) => client.query("UPDATE tricks.off SET by = $1::interval", [by]);
  return { url: database.url, client, moveBy };
}

const BY = { actor: "operator" };

test("when the server's clock jumps, only the kill switch is written, and the wrong time is not stored [SH9]", async () => {
  const { url, moveBy } = await movable();
  const { engine } = await engineAt(url);
  const { killSwitch, audit } = createStore(engine, { redact: (_, data) => data }).tenant("acme");
  const before = Date.now();
  await engine.commit("acme", change([insert("a")]));
  await moveBy("1 day");
  const wrong = ["b", "c"].map((id) => engine.commit("acme", change([insert(id)])));
  const stopped = killSwitch.stop("what is this?", BY);
  for (const one of wrong) await expect(one).rejects.toMatchObject({ code: "clock_wrong" });
  await stopped;
  await moveBy("-1 day");
  await expect(engine.commit("acme", change([insert("d")]))).rejects.toThrow(
    /(?:1 day|24 hours) back/,
  );
  await moveBy("0");
  expect((await engine.commit("acme", change([insert("e")]))).committed).toBe(true);
  const times = (await audit.read({ after: 0, limit: 10 })).map(({ at }) => Date.parse(at));
  expect(times).toHaveLength(3);
  for (const time of times) expect(Math.abs(time - before)).toBeLessThan(60_000);
});

test("a process that starts while the clock is wrong writes with it; the others then refuse until an operator confirms the time [SH9]", async () => {
  const { url, moveBy } = await movable();
  const { engine } = await engineAt(url);
  await engine.commit("acme", change([insert("a")]));
  await moveBy("1 day");
  const { engine: other } = await engineAt(url);
  expect((await other.commit("acme", change([insert("b")]))).committed).toBe(true);
  await moveBy("0");
  await expect(engine.commit("acme", change([insert("c")]))).rejects.toThrow(/behind the last/);
  const { clock } = createStore(engine, { redact: (_, data) => data }).tenant("acme");
  expect((await clock.accept("It was a day ahead.", BY)).state).toBe("accepted");
  const written = await engine.commit("acme", change([insert("c")]));
  expect(written.committed && Math.abs(written.at - Date.now())).toBeLessThan(60_000);
});

test("a tenant's chain is locked and never written, so a long snapshot keeps no dead versions of it [SM6]", async () => {
  const database = await freshDatabase(inject("pgUrl"));
  onTestFinished(() => database.drop());
  const { engine } = await engineAt(database.url);
  const client = new pg.Client(database.url);
  await client.connect();
  onTestFinished(() => client.end());
  await engine.commit("acme", change([insert("first")]));
  const version = async () =>
    (await client.query(`SELECT ctid, xmin FROM ${SCHEMA}.chains WHERE tenant = 'acme'`)).rows;
  await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  const before = await version();
  expect(before).toHaveLength(1);
  for (let n = 0; n < 50; n += 1) await engine.commit("acme", change([insert(`id-${n}`)]));
  await client.query("COMMIT");
  expect(await version()).toEqual(before);
  expect((await engine.head("acme")).seq).toBe(51);
});
