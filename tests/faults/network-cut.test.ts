// A worker loses its line to the database, another one goes on with its work, and the first one comes back.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { expect, inject, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import { startUpkeep } from "../../src/gate/upkeep.ts";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { createDice } from "../support/dice.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { isWanted } from "../support/stores.ts";
import { closeAccounts } from "./accounts.ts";
import { breakableLine, CUTS } from "./breakable-line.ts";
import { EVERYTHING, libraryDoor, startLoad, unlessAway } from "./load.ts";
import { partsFor } from "./production/parts.ts";
import { startProduction } from "./production/start-production.ts";
import { untilSettled } from "./settled.ts";
import { checkTasks, startTaskWorkers } from "./task-load.ts";

const NUMBER = scaled({ test: 2, proof: 8, full: 20 });
const SEED = process.env["FAULTS_SEED"] ?? String(Date.now());
const TENANT = "acme";
const LEASE_MS = 600;
/** After this long the server ends the turn of a silent writer; until then all writers of the tenant wait. */
const TURN_MS = 2_000;
const SILENT = CUTS.filter((how) => how !== "reset" && how !== "delay");

// skip: STORES names the stores to test, and postgres is not one of them
test.skipIf(!isWanted("postgres"))(
  `${NUMBER} cuts between a worker and the database, one-way, two-way, half-open, reset and slow: the worker cannot settle calls that others took over, and nothing happens twice [G10 T34 I7 I11 I12]`,
  async () => {
    console.log(`FAULTS_SEED=${SEED}`);
    const dice = createDice(SEED);
    const folder = mkdtempSync(path.join(tmpdir(), "sallyport-g10-"));
    const database = await freshDatabase(inject("pgUrl"));
    const production = await startProduction(folder, 120);
    const address = new URL(database.url);
    const line = await breakableLine({ host: address.hostname, port: Number(address.port) });
    address.port = String(line.port);
    const far = new pg.Pool({ connectionString: address.href, max: 8, pipeline: true });
    const near = new pg.Pool({ connectionString: database.url, max: 8, pipeline: true });
    for (const pool of [far, near]) pool.on("error", () => {});
    try {
      await using store = await postgresStore({ pool: far });
      await using other = await postgresStore({ pool: near });
      const parts = { ...partsFor(production.port, LEASE_MS), tenant: TENANT };
      const gate = createGate({ ...parts, store });
      const elsewhere = createGate({ ...parts, store: other });
      const upkeepProblems: string[] = [];
      const { door, stopUpkeep } = libraryDoor(
        gate,
        unlessAway((text) => upkeepProblems.push(text)),
      );
      const load = startLoad({
        door,
        name: "g10",
        agents: 8,
        reviewers: 2,
        wants: EVERYTHING,
        pace: { pauseMs: 10 },
        // The store may be away for longer than a lease.
        mayBeTooLate: true,
        dice: createDice(`${SEED} load`),
      });
      const tasks = startTaskWorkers({ lists: [gate.tasks, elsewhere.tasks], leaseMs: LEASE_MS });
      const upkeep = startUpkeep({
        gate: elsewhere,
        everyMs: 100,
        onError: (error) => void load.unexplained.push(`the other worker: ${error}`),
      });
      let longest = 0;
      const takenOver = async () => (await checkTasks(other, TENANT, tasks)).takenOver;
      let cuts = 0;
      for (; cuts < NUMBER || (cuts < 3 * NUMBER && (await takenOver()) === 0); cuts += 1) {
        // Every third one outlives the tenant's turn and the leases, so that others take over what was under way.
        const isLong = cuts % 3 === 0;
        const ms = isLong ? TURN_MS + LEASE_MS + 300 + dice.below(500) : 50 + dice.below(400);
        const before = load.latencies.length;
        while (load.latencies.length < before + 10) await setTimeout(10);
        await setTimeout(dice.below(300));
        line.cut(dice.pick(isLong ? SILENT : CUTS));
        await setTimeout(ms);
        line.mend();
        longest = Math.max(longest, ms);
      }
      await setTimeout(300);
      await load.stop();
      await tasks.stop();
      const settledMs = await untilSettled(other, TENANT, 15_000);
      await stopUpkeep();
      await upkeep.stop();
      const { figures, violations } = await closeAccounts(
        other,
        TENANT,
        load.asked,
        production.ledger(),
      );
      const found = await checkTasks(other, TENANT, tasks);
      const problems = [
        ...violations,
        ...found.problems,
        ...load.unexplained,
        ...upkeepProblems,
        ...tasks.unexplained,
      ];
      const told = {
        cuts,
        "longest cut ms": longest,
        "operations taken over": found.takenOver,
        "tasks completed": found.completed,
        "refused to a fenced worker": tasks.refused(),
        "stale writes accepted": found.stale,
        "told unavailable": load.refused["store_unavailable"] ?? 0,
        "settled after ms": settledMs,
        ...figures,
        violations: problems.length,
      };
      record({
        goal: "G10",
        what: "a worker's line to the database is cut",
        figures: told,
        seed: SEED,
      });
      console.log(told);
      expect(problems.slice(0, 20)).toEqual([]);
      expect(found.takenOver, "void: nothing was taken over").toBeGreaterThan(0);
      expect(found.completed, "void: too few tasks").toBeGreaterThan(NUMBER);
      expect(figures.effects, "void: too few effects").toBeGreaterThan(2 * NUMBER);
    } finally {
      await line.close();
      await far.end();
      await near.end();
      await production.stop();
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
  scaled({ test: 60_000, proof: 120_000, full: 600_000 }),
);
