// A primary dies before its standby has everything, and the standby takes its place under a running process.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { expect, inject, onTestFinished, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import { afterRestore } from "../../src/gate/restore.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { isSallyportError } from "../../src/model/errors.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import { change, insert } from "../../src/store/conformance/samples.ts";
import { postgresEngine, postgresStore } from "../../src/store/postgres/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { systemRandom } from "../../src/util/random.ts";
import { systemTimers } from "../../src/util/timers.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { record } from "../support/record.ts";
import { isWanted } from "../support/stores.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

// skip: STORES names the stores to test, and postgres is not one of them
test.skipIf(!isWanted("postgres"))(
  "after a failover that lost an acknowledged approval no process starts an effect until an operator confirms; the standby can be read [SH1] [SM9] [I7]",
  { timeout: 60_000 },
  async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "sallyport-failover-"));
    const server = await startPostgres({ durable: true });
    onTestFinished(() => rmSync(folder, { recursive: true }));
    onTestFinished(() => server.stop());
    const standby = await server.startStandby();
    const pools: pg.Pool[] = [];
    onTestFinished(async () => {
      for (const pool of pools) await pool.end();
    });
    const effects: string[] = [];
    const pay = defineTool({
      name: "world.pay",
      description: "Pays.",
      input: { type: "object" },
      safety: { effect: "external" },
      execute: () => effects.push("paid"),
    });
    const open = async () => {
      const options = { connectionString: server.url, max: 6, pipeline: true };
      const pool = new pg.Pool(options).on("error", () => {});
      pools.push(pool);
      const epochFile = path.join(folder, "epoch");
      const store = await postgresStore({ pool, epochFile, patienceMs: 5_000 });
      const validators = {
        tech: sampleVerdictValidator("schema"),
        business: sampleVerdictValidator("limits"),
      };
      const parts = { tools: [pay], validators, guard: allowAlways, policy: NO_RULES };
      return { pool, store, gate: createGate({ ...parts, store, tenant: "acme" }) };
    };
    const ask = async ({ gate }: Awaited<ReturnType<typeof open>>) => {
      const session = gate.sessions.open({ agent: "agent:one" });
      const asked = await session.call({ callId: "c", tool: "world.pay", input: {} });
      if (asked.answer !== "pending") return expect.fail(asked.answer);
      const { hash } = await gate.interactions.get(asked.interactionId);
      return { id: asked.interactionId, yes: { hash, by: "person:ada" } };
    };
    const answer = async (
      { gate }: Awaited<ReturnType<typeof open>>,
      { id, yes }: Awaited<ReturnType<typeof ask>>,
    ): Promise<string> =>
      gate.interactions.approve(id, yes).then(
        ({ answers }) => String(answers[0]?.answer),
        ({ code }) => String(code),
      );

    const running = await open();
    const question = await ask(running);
    await expect
      .poll(async () => {
        const text =
          "SELECT count(*)::int AS n FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()";
        return (await running.pool.query(text)).rows[0]?.n;
      })
      .toBe(1);
    // An auditor reads there, and cannot write.
    const reading = new pg.Pool({ connectionString: standby.url });
    pools.push(reading.on("error", () => {}));
    const replica = await postgresStore({ pool: reading, readOnly: true });
    expect((await replica.heads()).map(({ tenant }) => tenant)).toEqual(["acme"]);
    await replica.close();
    await standby.stop();
    expect(await answer(running, question)).toBe("done");
    expect(effects).toHaveLength(1);

    await server.crash("SIGKILL");
    await standby.takeOver();
    const open2 = await running.gate.interactions.get(question.id);
    expect(open2.status, "void: the yes was not lost").toBe("open");
    expect(await answer(running, question)).toBe("store_rolled_back");
    const figures = { failovers: 1, lost: 0, twice: effects.length - 1 };
    record({ goal: "FAILOVER", what: "a standby without the last commits takes over", figures });
    expect(effects, "the same yes is not executed twice").toHaveLength(1);
    // Stopping, asking and refusing go on.
    const other = await ask(running);
    await running.gate.killSwitch.stop("looking", { actor: "person:op" });
    await running.gate.killSwitch.resume("looking", { actor: "person:op" });
    await running.gate.interactions.reject(other.id, { ...other.yes, reason: "not now" });
    await running.store.close();

    // As many entries were written since as were lost, and more.
    const restarted = await open();
    expect(await answer(restarted, await ask(restarted))).toBe("store_rolled_back");
    expect(effects).toHaveLength(1);

    await afterRestore(restarted.store, { epoch: "after-failover", by: "person:op" });
    await restarted.gate.killSwitch.resume("looked at", { actor: "person:op" });
    expect(await answer(restarted, await ask(restarted))).toBe("done");
    expect(effects).toHaveLength(2);
    await restarted.store.close();
  },
);

// skip: STORES names the stores to test, and postgres is not one of them
test.skipIf(!isWanted("postgres"))(
  "a loss is noticed even if more entries were written since than were lost [SH1]",
  async () => {
    const database = await freshDatabase(inject("pgUrl"));
    onTestFinished(() => database.drop());
    const pool = new pg.Pool({ connectionString: database.url, max: 6, pipeline: true });
    onTestFinished(() => pool.end());
    const parts = { schema: "lost", random: systemRandom, timers: systemTimers, patienceMs: 2_000 };
    const engine = await postgresEngine({ pool, ...parts });
    onTestFinished(() => engine.close());
    for (const id of ["a", "b", "c"]) await engine.commit("acme", change([insert(id)]));
    // What a standby without the last entry would hold.
    await pool.query("DELETE FROM lost.audit_blocks WHERE last > 2");
    await pool.query("DELETE FROM lost.decisions WHERE id = 'c'");
    const other = await postgresEngine({ pool, ...parts });
    for (const id of ["d", "e", "f"]) await other.commit("acme", change([insert(id)]));
    await other.close();
    expect(engine.lostTail?.("acme")).toBeUndefined();
    expect((await engine.commit("acme", change([insert("g")]))).committed).toBe(true);
    expect(isSallyportError(engine.lostTail?.("acme"), "store_rolled_back")).toBe(true);
  },
);
