// Two servers and two workers over one database, killed at random under load: no process is special.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { expect, inject, test } from "vitest";
import { postgresStore } from "../../src/store/postgres/index.ts";
import { closeAccounts } from "../faults/accounts.ts";
import { startProduction } from "../faults/production/start-production.ts";
import { untilSettled } from "../faults/settled.ts";
import { createDice } from "../support/dice.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { record } from "../support/record.ts";
import { SCALE, scaled } from "../support/scale.ts";
import { isWanted } from "../support/stores.ts";
import { checkPeople } from "./check-people.ts";
import { passMaker } from "./pass-maker.ts";
import { agent, type Known, nothingKnown, reviewer, taskWorker } from "./people-and-agents.ts";
import { type Replica, server, worker } from "./replica.ts";
import { retryingClient } from "./retrying-client.ts";

const SECONDS = scaled({ test: 3, proof: 15, full: 120 });
const SEED = process.env["REPLICAS_SEED"] ?? String(Date.now());
const TENANT = "acme";
const AGENTS = 8;
const REVIEWERS = 3;
const TASK_WORKERS = 2;

// skip: six processes for half a minute are for the proof, not for every test run; or STORES leaves postgres out
test.skipIf(SCALE === "test" || !isWanted("postgres"))(
  `two servers and two workers over one Postgres, one of them killed every moment for ${SECONDS} s: clients only retry, nothing is lost, nothing happens twice [G2 I7 I9 T8]`,
  async () => {
    console.log(`REPLICAS_SEED=${SEED}`);
    const dice = createDice(SEED);
    const folder = mkdtempSync(path.join(tmpdir(), "sallyport-replicas-"));
    const database = await freshDatabase(inject("pgUrl"));
    const production = await startProduction(folder, 60);
    const errors: string[] = [];
    const options = {
      folder,
      databaseUrl: database.url,
      tenant: TENANT,
      productionPort: production.port,
      onError: (text: string) => void errors.push(text),
    };
    const servers = [await server("server-1", options), await server("server-2", options)];
    const replicas: Replica[] = [
      ...servers,
      worker("worker-1", options),
      worker("worker-2", options),
    ];
    const pool = new pg.Pool({ connectionString: database.url, max: 5, pipeline: true });
    try {
      await Promise.all(replicas.map((replica) => replica.start()));
      const urls = servers.map(({ url }) => url);
      const newPass = await passMaker(servers[0]?.link() ?? "");
      const known = nothingKnown();
      const retries = { count: 0 };
      const start = performance.now();
      const kills = { server: 0, worker: 0 };
      // On a busy machine it takes longer until enough has happened.
      const day = {
        isOpen: () => {
          const seconds = (performance.now() - start) / 1_000;
          return seconds < SECONDS || (seconds < 4 * SECONDS && !isEnough(known, kills));
        },
      };
      const people = async (
        count: number,
        role: "agent" | "reviewer",
        who: string,
        work: typeof agent,
      ) =>
        Promise.all(
          Array.from({ length: count }, async (_, n) => {
            const name = `${who}-${n}`;
            const send = retryingClient(urls, await newPass(name, role), retries);
            return () => work(name, send, known, day, createDice(`${SEED} ${name}`));
          }),
        );
      const everybody = [
        ...(await people(AGENTS, "agent", "agent:a", agent)),
        ...(await people(REVIEWERS, "reviewer", "person:p", reviewer)),
        ...(await people(TASK_WORKERS, "agent", "agent:t", taskWorker)),
      ];
      const killer = async () => {
        while (day.isOpen()) {
          await setTimeout(500 + dice.below(1_500));
          // Mostly a running one, and seldom the last server: on a slow machine no call would ever finish.
          const up = replicas.filter((replica) => replica.isReady());
          const isLast = servers.filter((replica) => replica.isReady()).length < 2;
          const spared = isLast && dice.below(3) > 0;
          const likely = spared ? up.filter(({ url }) => url === "") : up;
          if (likely.length === 0) continue;
          const victim = dice.pick(dice.below(10) === 0 ? replicas : likely);
          await victim.kill();
          kills[victim.url === "" ? "worker" : "server"] += 1;
          // A server that ends by itself is reported as a problem below.
          victim.start().catch(() => {});
        }
      };
      const looks = { all: 0, up: 0 };
      const watch = async () => {
        for (; day.isOpen(); await setTimeout(50)) {
          looks.all += 1;
          if (servers.some((replica) => replica.isReady())) looks.up += 1;
        }
      };
      await Promise.all([killer(), watch(), ...everybody.map((begin) => begin())]);

      await using store = await postgresStore({ pool });
      const settledMs = await untilSettled(store, TENANT, 30_000);
      await Promise.all(replicas.map((replica) => replica.stop()));
      const { figures, violations } = await closeAccounts(
        store,
        TENANT,
        known.asked,
        production.ledger(),
      );
      const problems = [
        ...violations,
        ...(await checkPeople(store, TENANT, known)),
        ...known.unexplained,
        ...errors.filter((text) => text.includes("ended by itself")),
      ];
      const told = {
        seconds: Math.round((performance.now() - start) / 1_000),
        kills: kills.server + kills.worker,
        "kills of servers": kills.server,
        calls: known.asked.length,
        approvals: known.decided.size,
        tasks: known.completed.size,
        retries: retries.count,
        "a server was up, %": Math.round((100 * looks.up) / looks.all),
        "settled after ms": settledMs,
        ...figures,
        unexplained: known.unexplained.length,
        violations: problems.length,
      };
      record({
        goal: "G2-kill",
        what: "two servers and two workers, killed at random under load",
        figures: told,
        seed: SEED,
      });
      console.log(told);
      if (problems.length > 0) console.log(errors.slice(0, 20).join(""));
      expect(problems.slice(0, 20)).toEqual([]);
      expect(isEnough(known, kills), "void: too few kills, calls, approvals or tasks").toBe(true);
      expect(figures.effects, "void: too few effects").toBeGreaterThan(SECONDS);
    } finally {
      await Promise.all(replicas.map((replica) => replica.kill()));
      await production.stop();
      await pool.end();
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
  4 * SECONDS * 1_000 + 120_000,
);

function isEnough(
  known: Known,
  kills: { readonly server: number; readonly worker: number },
): boolean {
  return (
    kills.server + kills.worker >= SECONDS / 2.5 &&
    kills.server >= SECONDS / 5 &&
    known.asked.length > 4 * SECONDS &&
    known.decided.size > SECONDS / 2 &&
    known.completed.size > SECONDS / 2
  );
}
