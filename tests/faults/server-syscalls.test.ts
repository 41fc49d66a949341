// Durable system calls of the PostgreSQL server fail in turn: it panics and restarts by itself in the middle of a lifecycle.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import pg from "pg";
import { expect, test } from "vitest";
import { createDice } from "../support/dice.ts";
import { findBinaries } from "../support/postgres-binaries.ts";
import { emptySchema } from "../support/postgres-database.ts";
import { startPostgres } from "../support/postgres-server.ts";
import { record } from "../support/record.ts";
import { SCALE, scaled } from "../support/scale.ts";
import { isWanted } from "../support/stores.ts";
import { addTo, lifeOverPostgres, migrated, NO_FIGURES, recoveredFrom } from "./life-accounts.ts";
import { storyOf } from "./lifecycle.ts";
import { startProduction } from "./production/start-production.ts";
import { NO_STRACE } from "./traced.ts";

/** How many points are tried; at full scale all of them. */
const POINTS = scaled({ test: 2, proof: 12, full: Number.POSITIVE_INFINITY });
/** New ones at the larger scales; the same each time in `npm test`, which is no place for rare finds. */
const SEED = process.env["FAULTS_SEED"] ?? (SCALE === "test" ? "1" : String(Date.now()));
const TENANT = "acme";
const SCHEMA = "sallyport";
/** After so many lines the server is asked for a checkpoint, whose syncs can fail as well. */
const CHECKPOINT_AFTER = 4;
/** Rides out a restart of the server, or gives up before it is back. */
const PATIENCES = [10_000, 500] as const;
const SYSCALLS = ["fdatasync", "pwrite64", "fsync"] as const;
const EVERY =
  POINTS === Number.POSITIVE_INFINITY ? "every durable system call" : `${POINTS} system calls`;
/** Why no server can be started here; a server that DATABASE_URL names is not ours to break. */
const NO_SERVER = await findBinaries().then(() => "", String);
if (NO_SERVER !== "") console.log(NO_SERVER);

interface Point {
  readonly syscall: (typeof SYSCALLS)[number];
  readonly error: "EIO" | "ENOSPC";
  readonly number: number;
  readonly patienceMs: number;
}

// skip: STORES names the stores to test, and postgres is not one of them; or there is no strace, or no server of our own
test.skipIf(!isWanted("postgres") || NO_SERVER !== "" || NO_STRACE !== "")(
  `postgres: with ${EVERY} of the server failing in turn, nothing is lost, happens twice or is falsely reported as not written to those who repeat what is called safe [G8] [T8] [I9] [I17] [F1] [F2]`,
  async () => {
    console.log(`FAULTS_SEED=${SEED}`);
    const folder = mkdtempSync(path.join(tmpdir(), "sallyport-panics-"));
    const log = path.join(folder, "strace.log");
    const postgres = await startPostgres({ durable: true });
    const production = await startProduction(folder);
    const figures = { points: 0, met: 0, panics: 0, refused: 0, ...NO_FIGURES };
    const problems: string[] = [];
    let runs = 0;

    /** One lifecycle beside a strace that holds every process of the server as it is then; those that follow are whole. */
    async function run(strace: readonly string[], patienceMs: number) {
      runs += 1;
      const name = `run-${runs}`;
      // What was written before it is synced before it: only its own syncs are counted, and fail.
      await ask(postgres.url, "CHECKPOINT");
      const before = await startedAt(postgres.url);
      let said = 0;
      let tracing: { stop(): Promise<void> } | undefined;
      const how = {
        ...{ schema: SCHEMA, patienceMs, tenant: TENANT, name, warm: true },
        async opened() {
          tracing = await attach(["-o", log, ...strace], await processesOf(postgres.url));
        },
        heard() {
          said += 1;
          // Whether it comes to its end is not the point: its syncs are among those that fail.
          if (said === CHECKPOINT_AFTER) askOnce(postgres.url, "CHECKPOINT").catch(() => {});
        },
      };
      const lines = await lifeOverPostgres(postgres.url, how, production.port);
      await tracing?.stop();
      const traced = readFileSync(log, "utf8");
      // A server that is asked to stop while it recovers from a panic may never end, and a checker wants it back.
      const panicked = (await startedAt(postgres.url)) !== before;
      const life = { tenant: TENANT, story: storyOf(name), lines };
      const ran = await recoveredFrom(postgres.url, SCHEMA, life, production);
      return { traced, lines, ran, panicked };
    }

    try {
      // Each restart would sync every file of the server one by one.
      await ask(postgres.url, "ALTER SYSTEM SET recovery_init_sync_method = 'syncfs'");
      await ask(postgres.url, "SELECT pg_reload_conf()");
      await migrated(postgres.url, SCHEMA);
      const trace = ["-e", `trace=${SYSCALLS.join(",")}`];
      await run(trace, PATIENCES[0]);
      // The second one counts: only the first writes and syncs files that are new.
      await emptySchema(postgres.url, SCHEMA);
      const calm = await run(trace, PATIENCES[0]);
      expect(calm.ran.violations).toEqual([]);
      const counts = countsIn(calm.traced);
      const points = chosen(counts);
      for (const point of points) {
        await emptySchema(postgres.url, SCHEMA);
        const { syscall, error, number, patienceMs } = point;
        const inject = `inject=${syscall}:error=${error}:when=${number}`;
        const { traced, lines, ran, panicked } = await run(
          ["-e", `trace=${syscall}`, "-e", inject],
          patienceMs,
        );
        figures.points += 1;
        figures.met += traced.includes("(INJECTED)") ? 1 : 0;
        figures.panics += panicked ? 1 : 0;
        figures.refused += lines.filter((line) => "refused" in line).length;
        addTo(figures, ran.figures);
        const found = ran.violations.map((text) => `${inject} ${patienceMs}: ${text}`);
        if (found.length > 0) console.log(found);
        problems.push(...found);
      }
      record({
        goal: "G8",
        what: "durable system calls of the server fail",
        figures: { ...figures, violations: problems.length },
        seed: SEED,
      });
      console.log(Object.fromEntries(counts), figures);
      expect(problems.slice(0, 20)).toEqual([]);
      expect(figures.points, "void: too few points").toBe(points.length);
      expect(figures.panics, "void: the server never panicked").toBeGreaterThan(0);
      expect(figures.met, "void: too few faults were met").toBeGreaterThanOrEqual(
        Math.floor(0.8 * points.length),
      );
    } finally {
      await production.stop();
      await postgres.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
  scaled({ test: 120_000, proof: 400_000, full: 4 * 3_600_000 }),
);

/** The most calls that one process made: strace counts for each process apart. */
function countsIn(traced: string): ReadonlyMap<Point["syscall"], number> {
  const most = (syscall: string) => {
    const own = traced.split("\n").filter((line) => line.includes(` ${syscall}(`));
    const byProcess = Map.groupBy(own, (line) => line.split(" ")[0]);
    return Math.max(0, ...[...byProcess.values()].map(({ length }) => length));
  };
  return new Map(SYSCALLS.map((syscall) => [syscall, most(syscall)]));
}

function chosen(counts: ReadonlyMap<Point["syscall"], number>): readonly Point[] {
  const all = [...counts].flatMap(([syscall, count]) =>
    Array.from({ length: count }, (_, n) => n + 1).flatMap((number) =>
      PATIENCES.map((patienceMs): Point => {
        // A sync that finds the disk full is the same to the server as one that fails; a write is not.
        const error = syscall === "pwrite64" && patienceMs === PATIENCES[0] ? "ENOSPC" : "EIO";
        return { syscall, error, number, patienceMs };
      }),
    ),
  );
  if (POINTS >= all.length) return all;
  const dice = createDice(SEED);
  // A commit is what matters most, above all the first of a tenant: nothing is there yet that could be locked.
  const first = all.filter(({ syscall, number }) => syscall === "fdatasync" && number === 1);
  const picked = new Set<Point>(first);
  while (picked.size < POINTS) picked.add(dice.pick(all));
  return [...picked];
}

/** Answers when strace holds them all; `stop` lets go of those that are left. */
async function attach(strace: readonly string[], pids: readonly number[]) {
  const tracer = spawn("strace", [...strace, ...pids.flatMap((pid) => ["-p", String(pid)])], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const closed = once(tracer, "close");
  let said = "";
  await new Promise<void>((resolve, reject) => {
    tracer.stderr.on("data", (chunk) => {
      said += chunk;
      if ((said.match(/ attached/g)?.length ?? 0) >= pids.length) resolve();
    });
    tracer.once("close", () => reject(new Error(`strace could not attach: ${said}`)));
  });
  return {
    async stop() {
      tracer.kill("SIGINT");
      await closed;
    },
  };
}

async function processesOf(url: string): Promise<readonly number[]> {
  const rows = await ask(url, "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()");
  return rows.map(({ pid }) => Number(pid));
}

/** When the checkpointer began: it is a new one after every panic. */
async function startedAt(url: string): Promise<string> {
  const text = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
  return String((await ask(url, text))[0]?.["pid"]);
}

/** Waits for a server that restarts. */
async function ask(url: string, text: string): Promise<Rows> {
  for (const deadline = performance.now() + 60_000; ; await setTimeout(50)) {
    try {
      return await askOnce(url, text);
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
  }
}

type Rows = readonly Record<string, unknown>[];

async function askOnce(url: string, text: string): Promise<Rows> {
  const client = new pg.Client({ connectionString: url }).on("error", () => {});
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end().catch(() => {});
  }
}
