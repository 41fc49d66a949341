// A long time under load with a fault every moment: a server and two workers over one SQLite file. The server is never
// killed, only paused, so that its memory can be looked at from the beginning to the end. A second server over the same
// folder would be refused.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { sqliteStore } from "../../src/store/sqlite/index.ts";
import { type Replica, server, worker } from "../replicas/replica.ts";
import { createDice } from "../support/dice.ts";
import { closeAccounts } from "./accounts.ts";
import { httpDoor } from "./http-door.ts";
import { spread, startLoad, WITH_CUTS } from "./load.ts";
import { startProduction } from "./production/start-production.ts";
import { untilSettled } from "./settled.ts";

export interface SoakOptions {
  readonly seconds: number;
  /** Each makes one call a second. */
  readonly agents: number;
  readonly faultEveryMs: number;
  readonly seed: string;
  /** Told every so often how it goes. Shape: push. */
  readonly onProgress?: (line: Readonly<Record<string, number | string>>) => void;
}

export interface Soaked {
  readonly figures: Readonly<Record<string, number>>;
  /** Sentences; there should be none. */
  readonly problems: readonly string[];
}

const TENANT = "acme";
/** Beyond the lease of what it has begun, so that others take it over. */
const PAUSE_MS = 4_000;
const TELL_EVERY_S = 60;
const SETTLE_MS = 60_000;

interface Cast {
  /** Never killed. */
  readonly lasting: Replica;
  readonly other: Replica;
  readonly working: Replica;
}

export async function soak(options: SoakOptions): Promise<Soaked> {
  const { seconds, agents, seed, onProgress } = options;
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-soak-"));
  const production = await startProduction(folder);
  const said: string[] = [];
  const place = { folder, tenant: TENANT, productionPort: production.port };
  const parts = { ...place, onError: (text: string) => void said.push(text) };
  const lasting = await server("server-1", parts);
  const other = worker("worker-2", parts);
  const working = worker("worker-1", parts);
  const replicas = [lasting, other, working];
  try {
    await lasting.start();
    const door = httpDoor([lasting.url], lasting.link());
    // People sign in while there is one admin.
    await door.inbox(0);
    await Promise.all([other.start(), working.start()]);
    const dice = createDice(seed);
    const pace = { everyMs: 1_000 };
    const people = { agents, reviewers: 4, wants: WITH_CUTS, lookEveryMs: 200 };
    const load = startLoad({ door, name: "soak", ...people, pace, dice });
    const memory: number[] = [];
    const stop = new AbortController();
    const faults = breakThings({ lasting, other, working }, options, stop.signal);
    for (let second = 1, seen = 0; second <= seconds; second += 1) {
      await setTimeout(1_000);
      memory.push(memoryOf(lasting));
      if (second % TELL_EVERY_S !== 0 && second !== seconds) continue;
      const { "call p99 ms": p99 } = spread(load.latencies.slice(seen));
      seen = load.latencies.length;
      const now = { seconds: second, calls: load.asked.length, "p99 ms": p99 };
      onProgress?.({ ...now, "memory MB": memory.at(-1) ?? 0, ...faults.counts });
    }
    stop.abort();
    await faults.ended;
    await load.stop();
    await using store = sqliteStore({ file: path.join(lasting.data, "sallyport.db") });
    const settledMs = await untilSettled(store, TENANT, SETTLE_MS);
    await Promise.all(replicas.map((replica) => replica.stop()));
    const ledger = production.ledger();
    const closed = await closeAccounts(store, TENANT, load.asked, ledger);
    const fallen = said.filter((text) => text.includes("ended by itself"));
    const problems = [...closed.violations, ...load.unexplained, ...fallen];
    const figures = {
      seconds,
      calls: load.asked.length,
      decisions: load.decided(),
      ...faults.counts,
      ...spread(load.latencies),
      ...growth(memory),
      "settled after ms": settledMs,
      ...closed.figures,
      // A process that was paused with a request in hand, after another one had probed and gone on.
      "refused as too late": ledger.filter(({ kind, applied }) => kind === "probed" && !applied)
        .length,
      unexplained: load.unexplained.length,
      violations: problems.length,
    };
    return { figures, problems };
  } finally {
    await Promise.all(replicas.map((replica) => replica.kill()));
    await production.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One fault after the other, each kind in turn: a process is killed and comes back, or stands still for a while. */
function breakThings(
  { lasting, other, working }: Cast,
  { faultEveryMs, seed }: SoakOptions,
  signal: AbortSignal,
) {
  const dice = createDice(`${seed} faults`);
  const counts = { kills: 0, pauses: 0 };
  async function kill(victim: Replica): Promise<void> {
    await victim.kill();
    counts.kills += 1;
    // One that cannot start ends by itself, which is reported.
    await victim.start().catch(() => {});
  }
  async function pause(victim: Replica): Promise<void> {
    const pid = victim.pid();
    if (pid === undefined) return;
    process.kill(pid, "SIGSTOP");
    await setTimeout(PAUSE_MS);
    process.kill(pid, "SIGCONT");
    counts.pauses += 1;
  }
  const kinds = [
    () => kill(other),
    () => pause(lasting),
    () => kill(working),
    () => pause(other),
    () => pause(working),
  ];
  async function run(): Promise<void> {
    for (let next = dice.below(kinds.length); ; next += 1) {
      const waitMs = faultEveryMs / 2 + dice.below(faultEveryMs);
      await setTimeout(waitMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      await kinds[next % kinds.length]?.();
    }
  }
  return { counts, ended: run() };
}

/** Resident, in MB. */
function memoryOf(replica: Replica): number {
  const status = readFileSync(`/proc/${replica.pid()}/status`, "utf8");
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024);
}

/** From the second quarter, when caches are warm, to the last. */
function growth(memory: readonly number[]) {
  const quarter = memory.length >> 2;
  const middle = (part: readonly number[]) => part.toSorted((a, b) => a - b)[part.length >> 1] ?? 0;
  const before = middle(memory.slice(quarter, 2 * quarter));
  const after = middle(memory.slice(-quarter));
  const percent = Math.round((1_000 * (after - before)) / before) / 10;
  return {
    "memory MB, second quarter": before,
    "memory MB, end": after,
    "memory growth %": percent,
  };
}
