// A network that drops packets without an error on either side.

import pg from "pg";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { isWanted } from "../support/stores.ts";
import { breakableLine } from "./breakable-line.ts";

const PATIENCE_MS = 2_000;
const SESSION = { id: "s-1", agent: "agent:one", owner: "person:ada", workingDirectory: "/" };
/** For a machine with much else to do. */
const MARGIN_MS = 8_000;

// skip: STORES names the stores to test, and postgres is not one of them
describe.skipIf(!isWanted("postgres"))("postgres: a silent network", () => {
  test.each(["two-way", "half-open", "to the server", "from the server"] as const)(
    "cut %s: a write, a read, the kill switch and closing all end in time with a correct result [SH3]",
    async (how) => {
      const database = await freshDatabase(inject("pgUrl"));
      onTestFinished(() => database.drop());
      const address = new URL(database.url);
      const line = await breakableLine({ host: address.hostname, port: Number(address.port) });
      address.port = String(line.port);
      const pool = new pg.Pool({ connectionString: address.href, max: 8, pipeline: true });
      pool.on("error", () => {});
      onTestFinished(async () => {
        await line.close();
        await pool.end();
      });
      const store = await postgresStore({ pool, patienceMs: PATIENCE_MS });
      const acme = store.tenant("acme");
      await acme.killSwitch.stop("warm up", { actor: "op" });
      await acme.killSwitch.isStopped();
      line.cut(how);
      const started = performance.now();
      const outcome = (call: Promise<unknown>) =>
        call.then(
          () => "answered",
          ({ code }) => String(code),
        );
      const calls = {
        write: outcome(acme.sessions.open(SESSION)),
        get: outcome(acme.killSwitch.isStopped()),
        find: outcome(store.heads()),
        stop: outcome(acme.killSwitch.stop("now", { actor: "op" })),
        close: outcome(
          new Promise((resolve) => setTimeout(resolve, 300)).then(() => store.close()),
        ),
      };
      const late = new Promise<string>((resolve) =>
        setTimeout(() => resolve("still pending"), PATIENCE_MS + MARGIN_MS),
      );
      const ended = await Promise.all(
        Object.entries(calls).map(async ([name, call]) => [name, await Promise.race([call, late])]),
      );
      const ms = performance.now() - started;
      expect(Object.fromEntries(ended)).toMatchObject({
        write: expect.stringMatching(/^(?:store_unavailable|commit_unknown)$/),
        get: "store_unavailable",
        find: "store_unavailable",
        stop: expect.stringMatching(/^(?:store_unavailable|commit_unknown)$/),
        close: "answered",
      });
      expect(ms).toBeLessThan(PATIENCE_MS + MARGIN_MS);
    },
  );

  test("when the network is back, so is the store, and the answers to earlier writes are true [SH3]", async () => {
    const database = await freshDatabase(inject("pgUrl"));
    onTestFinished(() => database.drop());
    const address = new URL(database.url);
    const line = await breakableLine({ host: address.hostname, port: Number(address.port) });
    address.port = String(line.port);
    const pool = new pg.Pool({ connectionString: address.href, max: 8, pipeline: true });
    pool.on("error", () => {});
    const store = await postgresStore({ pool, patienceMs: PATIENCE_MS });
    onTestFinished(async () => {
      await store.close();
      await line.close();
      await pool.end();
    });
    const acme = store.tenant("acme");
    await acme.killSwitch.stop("warm up", { actor: "op" });
    line.cut("from the server");
    const started = performance.now();
    const resumed = await acme.killSwitch.resume("cut", { actor: "op" }).then(
      () => "answered",
      ({ code }) => String(code),
    );
    expect(resumed).toMatch(/^(?:store_unavailable|commit_unknown)$/);
    expect(performance.now() - started).toBeLessThan(PATIENCE_MS + MARGIN_MS);
    line.mend();
    const isStopped = await acme.killSwitch.isStopped();
    if (resumed === "store_unavailable") expect(isStopped, "nothing was written").toBe(true);
    await acme.killSwitch.stop("again", { actor: "op" });
    expect(await acme.killSwitch.isStopped()).toBe(true);
  });
});
