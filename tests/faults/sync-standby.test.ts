// A primary with a synchronous standby is killed under load; the standby takes over, and the processes find it by their
// connection string with two hosts. Nothing that was acknowledged is lost, and nothing is executed twice.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import { postgresStore, primaryPool } from "../../src/store/postgres/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { isWanted } from "../support/stores.ts";

const POLICY = {
  version: "1",
  rules: [{ id: "pay", effect: "allow", tool: "world.pay", reason: "load" }],
} as const;

const ROUNDS = Array.from({ length: scaled({ test: 1, proof: 1, full: 10 }) }, (_, at) => at + 1);

// skip: STORES names the stores to test, and postgres is not one of them
test.skipIf(!isWanted("postgres")).for(ROUNDS)(
  "kill -9 of a primary with a synchronous standby under load: 0 acknowledged writes lost, 0 effects twice, and it goes on, time %i [SH1] [I7 I9]",
  { timeout: 120_000 },
  async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "sallyport-sync-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const server = await startPostgres({ durable: true });
    onTestFinished(() => server.stop());
    const standby = await server.startStandby();
    await standby.beSynchronous();
    const hosts = `${new URL(server.url).host},${new URL(standby.url).host}`;
    const both = `postgres://postgres@${hosts}/postgres`;
    /** Production: what was really done, with its idempotency keys. */
    const effects: string[] = [];
    const pay = defineTool({
      name: "world.pay",
      description: "Pays.",
      input: { type: "object", properties: { n: { type: "string" } }, required: ["n"] },
      safety: { effect: "external" },
      execute: ({ input }) => {
        effects.push(String(input["n"]));
        return "paid";
      },
    });
    const open = async (name: string) => {
      const pool = primaryPool(pg, both, {
        max: 6,
        pipeline: true,
        connectionTimeoutMillis: 2_000,
      });
      pool.on("error", () => {});
      onTestFinished(() => pool.end());
      const epochFile = path.join(folder, `${name}.epoch`);
      const store = await postgresStore({ pool, epochFile, patienceMs: 30_000 });
      onTestFinished(() => store.close());
      return createGate({ store, tenant: "acme", tools: [pay], policy: POLICY });
    };
    const gates = [await open("one"), await open("two")];
    const acknowledged: string[] = [];
    const unknown: string[] = [];
    let isOver = false;
    let killedAt = 0;
    let firstAfterMs = 0;
    const load = gates.flatMap((gate, process) =>
      [1, 2, 3, 4].map(async (lane) => {
        const session = gate.sessions.open({ agent: `agent:${process}-${lane}` });
        for (let count = 0; !isOver; count += 1) {
          const n = `${process}-${lane}-${count}`;
          const begun = performance.now();
          const answer = await session
            .call({ callId: n, tool: "world.pay", input: { n }, key: n })
            .catch((error: unknown) => ({ answer: "error", text: String(error) }));
          if (answer.answer === "done") {
            acknowledged.push(n);
            if (killedAt > 0 && begun > killedAt && firstAfterMs === 0) {
              firstAfterMs = performance.now() - killedAt;
            }
          } else unknown.push(`${n} ${answer.answer}`);
        }
      }),
    );
    await expect.poll(() => acknowledged.length, { timeout: 60_000 }).toBeGreaterThan(100);
    killedAt = performance.now();
    await server.crash("SIGKILL");
    await standby.promote();
    const before = acknowledged.length;
    await expect.poll(() => firstAfterMs, { timeout: 60_000 }).toBeGreaterThan(0);
    await expect.poll(() => acknowledged.length, { timeout: 60_000 }).toBeGreaterThan(before + 50);
    isOver = true;
    await Promise.all(load);

    const [gate] = gates;
    const entries: string[] = [];
    for (let after = 0; ; ) {
      const page = (await gate?.audit.entries({ after, limit: 500 })) ?? [];
      for (const { type, subject } of page) entries.push(`${type} ${subject}`);
      const last = page.at(-1);
      if (last === undefined) break;
      after = last.seq;
    }
    const executed = entries.filter((line) => line.startsWith("operation.succeeded")).length;
    const twice = effects.filter((n, index) => effects.indexOf(n) !== index);
    const lost = acknowledged.filter((n) => !effects.includes(n));
    record({
      goal: "FAILOVER",
      what: "kill -9 of a primary with a synchronous standby under load",
      figures: {
        failovers: 1,
        acknowledged: acknowledged.length,
        unknown: unknown.length,
        "recovery ms": Math.round(firstAfterMs),
        lost: lost.length + Math.max(0, acknowledged.length - executed),
        twice: twice.length,
      },
    });
    expect(twice, "effects twice").toEqual([]);
    expect(lost, "acknowledged, but never done").toEqual([]);
    expect(new Set(acknowledged).size).toBe(acknowledged.length);
    // An outcome that was acknowledged is in the log of the new primary.
    expect(executed).toBeGreaterThanOrEqual(acknowledged.length);
    expect(firstAfterMs, "void: it never went on").toBeGreaterThan(0);
  },
);
