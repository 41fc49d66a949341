// What one caller or one tenant does must not be paid for by the others.

import { randomBytes } from "node:crypto";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { DECISIONS } from "../../src/model/decision.ts";
import { change, insert, soundTrail, update } from "../../src/store/conformance/samples.ts";
import { createStore } from "../../src/store/store.ts";
import { engineAt, openEngine, SCHEMA, watchedPool } from "../support/postgres-engine.ts";
import { refusal } from "../support/staging.ts";
import { isWanted } from "../support/stores.ts";

const asIs = (_: string, data: object) => data as never;

/** Another program's transaction that holds rows until it is ended. */
async function holding(url: string, sql: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`BEGIN; ${sql}`);
  let isOpen = true;
  const end = async () => {
    if (!isOpen) return;
    isOpen = false;
    await client.query("ROLLBACK");
    await client.end();
  };
  onTestFinished(end);
  return end;
}

async function took(call: Promise<unknown>): Promise<number> {
  const started = performance.now();
  await call.catch(() => {});
  return performance.now() - started;
}

// skip: STORES names the stores to test, and this is not one of them
describe.skipIf(!isWanted("postgres"))("postgres: neighbours", () => {
  test("a tenant whose chain is locked waits alone and gets store_busy; when the row is free it continues in order [SH4]", {
    timeout: 100_000,
  }, async () => {
    const patienceMs = 4_000;
    const { url, engine } = await openEngine({ patienceMs });
    const store = createStore(engine, { redact: asIs });
    for (const tenant of ["a", "b"]) await engine.commit(tenant, change([insert("first")]));
    const free = await holding(url, `SELECT 1 FROM ${SCHEMA}.chains WHERE tenant = 'b' FOR UPDATE`);
    const stuck = engine.commit("b", change([insert("stuck")]));
    const busy = refusal("store_busy", stuck);
    const stop = store.tenant("a").killSwitch.stop("now", { actor: "op" });
    const late = new Promise<number>((resolve) =>
      setTimeout(() => resolve(Infinity), 4 * patienceMs),
    );
    const waited = await Promise.race([took(stop), late]);
    expect(waited, "nobody else waits that long").toBeLessThan(patienceMs);
    expect(await store.tenant("a").killSwitch.isStopped()).toBe(true);
    expect((await busy).details.hint).toMatch(/row of this tenant is locked/);
    // It is known now, and is not let in among the others before it has been written once.
    const again = refusal("store_busy", engine.commit("b", change([insert("again")])));
    const others = Array.from({ length: 5 }, (_, n) =>
      engine.commit("a", change([insert(`a-${n}`)])),
    );
    let isStillHeld = true;
    void again.then(() => {
      isStillHeld = false;
    });
    await Promise.all(others);
    expect(isStillHeld, "the others did not wait for it").toBe(true);
    await again;
    const waiting = ["x", "y", "z"].map((id) => engine.commit("b", change([insert(id)])));
    await free();
    expect((await Promise.all(waiting)).map(({ committed }) => committed)).toEqual([
      true,
      true,
      true,
    ]);
    const trail = await soundTrail(engine, "b");
    expect(trail.map(({ subject }) => subject)).toEqual(["first", "x", "y", "z"]);
  });

  test("a locked record blocks its tenant and no other [SH4]", {
    timeout: 100_000,
  }, async () => {
    const { url, engine } = await openEngine({ patienceMs: 4_000 });
    for (const tenant of ["a", "b"]) await engine.commit(tenant, change([insert("r")]));
    await holding(url, `SELECT 1 FROM ${SCHEMA}.decisions WHERE tenant = 'b' FOR UPDATE`);
    const [stuck, free] = await Promise.allSettled([
      engine.commit("b", change([update("r", {}, { state: "failed" })])),
      engine.commit("a", change([update("r", {}, { state: "failed" })])),
    ]);
    expect(stuck).toMatchObject({ status: "rejected", reason: { code: "store_busy" } });
    expect(free).toMatchObject({ status: "fulfilled", value: { committed: true } });
  });

  test("a change that is refused half-way gets its answer, and the rest of its group is written together [SH6]", async () => {
    let begun = 0;
    const { engine } = await openEngine({
      watch: (pool) =>
        watchedPool(pool, ({ text }) => {
          if (/^(BEGIN|SELECT [a-z]+\.commit_)/.test(text)) begun += 1;
          return undefined;
        }),
    });
    await engine.commit("acme", change([insert("taken")]));
    begun = 0;
    const refused = change([insert("half"), update("nobody", {}, { state: "failed" })]);
    const answers = await Promise.all([
      ...Array.from({ length: 31 }, (_, n) => engine.commit("acme", change([insert(`a-${n}`)]))),
      engine.commit("globex", refused),
      engine.commit("acme", change([insert("taken")])),
      ...Array.from({ length: 31 }, (_, n) => engine.commit("acme", change([insert(`b-${n}`)]))),
    ]);
    expect(answers.filter(({ committed }) => committed)).toHaveLength(62);
    expect(answers[31]).toMatchObject({ committed: false, step: 1, current: undefined });
    expect(answers[32]).toMatchObject({ committed: false, step: 0, current: { id: "taken" } });
    expect(await engine.get("globex", DECISIONS, "half")).toBeUndefined();
    expect(begun, "one transaction that is rolled back, one that counts").toBe(2);
  });

  test("a server error about one change is returned to that change alone, and the others are written [SM5]", async () => {
    const { engine } = await openEngine();
    // Too large for an index, which the server says with 54000.
    const letters = () =>
      Array.from(randomBytes(1_500), (byte) => String.fromCodePoint(0x4e00 + byte * 64)).join("");
    const bad = [letters(), letters()].map((id) =>
      engine.commit("acme", change([insert(id)])).catch(({ code }) => code),
    );
    const good = Array.from({ length: 40 }, (_, n) =>
      engine.commit("acme", change([insert(`g-${n}`)])),
    );
    expect(await Promise.all(bad)).toEqual(["invalid_input", "invalid_input"]);
    expect((await Promise.all(good)).every(({ committed }) => committed)).toBe(true);
    expect(await soundTrail(engine)).toHaveLength(40);
  });

  test("a group is closed at some megabytes, so that large changes are written and a small one beside them too [SM4]", async () => {
    const sizes: number[] = [];
    const { engine } = await openEngine({
      patienceMs: 30_000,
      watch: (pool) =>
        watchedPool(pool, ({ values = [] }) => {
          const long = values.filter((value) => typeof value === "string");
          sizes.push(long.reduce((sum, text) => sum + String(text).length, 0));
          return undefined;
        }),
    });
    const raw = new Uint8Array(1_000_000).fill(97);
    const large = Array.from({ length: 16 }, (_, n) =>
      engine.commit("acme", change([insert(`l-${n}`, { raw })])),
    );
    const small = engine.commit("globex", change([insert("small")]));
    const answers = await Promise.all([...large, small]);
    expect(answers.every(({ committed }) => committed)).toBe(true);
    expect(Math.max(...sizes), "void: the contents are not in it").toBeGreaterThan(1_000_000);
    expect(Math.max(...sizes), "the largest statement").toBeLessThan(8_000_000);
  });

  test("the kill switch and the outcomes of operations overtake queued changes [SH7]", async () => {
    const { engine } = await openEngine({ patienceMs: 30_000 });
    const store = createStore(engine, { redact: asIs });
    let written = 0;
    const flood = Array.from({ length: 4_000 }, (_, n) =>
      engine.commit("a", change([insert(`f-${n}`)])).then(() => {
        written += 1;
      }),
    );
    await store.tenant("b").killSwitch.stop("now", { actor: "op" });
    // The row of the switch is made by a second commit; each waits for the group under way and is in the next one.
    expect(written, "of 4,000 that were there before").toBeLessThan(1_500);
    await Promise.all(flood);
  });

  test("two processes beside each other see no retries under a stricter default isolation [SL2]", async () => {
    const { url, engine, pool } = await openEngine();
    const name = new URL(url).pathname.slice(1);
    await pool.query(`ALTER DATABASE ${name} SET default_transaction_isolation = 'serializable'`);
    let refused = 0;
    const watch = (inner: pg.Pool) =>
      watchedPool(inner, (_, ask) =>
        ask().catch((error: unknown) => {
          refused += 1;
          throw error;
        }),
      );
    const both = await Promise.all([engineAt(url, { watch }), engineAt(url, { watch })]);
    for (let n = 0; n < 20; n += 1) {
      const ids = both.map((_, at) => `${n}-${at}`);
      await Promise.all(
        both.map((one, at) => one.engine.commit("acme", change([insert(ids[at] ?? "")]))),
      );
    }
    expect(refused, "statements that the server refused").toBe(0);
    expect(await soundTrail(engine)).toHaveLength(40);
  });
});
