import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { stopwatch, systemClock } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import { createIds } from "../util/ids.ts";
import { systemRandom } from "../util/random.ts";
import { type CasesRun, named, ownCases, plannedPoints, runCrashCases } from "./cases/run-cases.ts";
import { readKitModule, type StoreAt } from "./open-kit.ts";
import { runRandom, type Trouble } from "./random/run-random.ts";
import { addCounts, type CrashKitReport, NO_COUNTS, spreadOf } from "./report.ts";

export interface CrashKitOptions {
  /** `random`: a random process is killed or paused, again and again. `points`: one process is killed at each named point. */
  readonly mode: "random" | "points";
  /** A PostgreSQL database, in which the run has its own tenants. Default: a SQLite file that is removed afterwards. */
  readonly database?: string;
  /** A module with your own store or tools; see `CrashKitHooks`. */
  readonly config?: string;
  readonly seed: number;
  /** How often a process is killed or paused; only for `random`. */
  readonly cycles: number;
  /** How many of the cycles pause instead of killing; default one in fifty. */
  readonly pauses?: number;
  /** Further faults, of your network or your database server; only for `random`. Every second cycle injects one. */
  readonly troubles?: readonly Trouble[];
  /** Shape: push. */
  readonly onProgress?: (progress: KitProgress) => void;
}

export interface KitProgress {
  readonly done: number;
  readonly of: number;
  readonly violations: number;
}

/** Cases per recovery. */
const GROUP = 40;
/** The first recovery of a group is killed at one of these. */
const CUT_OFF = ["S5.after:1", "S6.before:1", "S6.after:1", "S7.before:2"] as const;

/** Tests a store and tools with real processes and real kills, and compares the ledger, the audit log and the records. */
export async function runCrashKit(options: CrashKitOptions): Promise<CrashKitReport> {
  const { mode, seed, database, config } = options;
  const module = await readKitModule(config);
  const began = stopwatch.now();
  const folder = await mkdtemp(path.join(tmpdir(), "sallyport-crashkit-"));
  const store: StoreAt =
    database === undefined
      ? { kind: "sqlite", file: path.join(folder, "store.db") }
      : { kind: "postgres", url: database };
  const run = `crashkit-${createIds({ clock: systemClock, random: systemRandom }).next()}`;
  const cache = path.join(folder, "compile-cache");
  const shared: Shared = { run, store, folder, cache, ...definedFields({ config }) };
  try {
    const done =
      mode === "random"
        ? await random(shared, options)
        : await points(shared, options, module.hooks.calls !== undefined);
    return {
      ok: done.violations.length === 0,
      mode,
      store: module.hooks.openStore === undefined ? store.kind : "your store",
      seed,
      seconds: Math.round((stopwatch.now() - began) / 100) / 10,
      ...done,
    };
  } finally {
    await rm(folder, { recursive: true });
  }
}

interface Shared {
  readonly run: string;
  readonly store: StoreAt;
  readonly config?: string;
  readonly folder: string;
  readonly cache: string;
}

type Done = Pick<CrashKitReport, "exercised" | "latencies" | "violations">;

async function random(shared: Shared, options: CrashKitOptions): Promise<Done> {
  const { seed, cycles, pauses = Math.ceil(cycles / 50), troubles = [], onProgress } = options;
  const onCycle = ({ number, violations }: { number: number; violations: number }) =>
    onProgress?.({ done: number, of: cycles, violations });
  const ran = await runRandom({ ...shared, seed, cycles, pauses, troubles, onCycle });
  const { counts, violations, startMs, recoveryMs, restMs, troubles: struck, ...exercised } = ran;
  return {
    exercised: { ...exercised, ...struck, ...counts },
    latencies: {
      "start of a process": startMs,
      "a call left behind, after its lease": recoveryMs,
      "a tenant at rest after its faults": restMs,
    },
    violations,
  };
}

async function points(shared: Shared, options: CrashKitOptions, isOwn: boolean): Promise<Done> {
  const { seed, onProgress } = options;
  const cases = isOwn ? named(ownCases()) : plannedPoints(seed);
  const runs: CasesRun[] = [];
  let done = 0;
  const found = () => runs.flatMap(({ violations }) => violations);
  for (let first = 0; first < cases.length; first += GROUP) {
    const number = first / GROUP;
    const ran = await runCrashCases({
      ...shared,
      run: `${shared.run}-${number + 1}`,
      folder: path.join(shared.folder, `group-${number}`),
      cases: cases.slice(first, first + GROUP),
      atOnce: 2,
      cutOff: CUT_OFF[(seed + number) % CUT_OFF.length] ?? "",
      onCase() {
        done += 1;
        onProgress?.({ done, of: cases.length, violations: found().length });
      },
    });
    runs.push(ran);
  }
  const sum = (of: (ran: CasesRun) => number) => runs.reduce((all, ran) => all + of(ran), 0);
  const counts = runs.reduce((all, ran) => addCounts(all, ran.counts), NO_COUNTS);
  return {
    exercised: {
      cases: cases.length,
      crashes: sum(({ crashes }) => crashes),
      missed: sum(({ missed }) => missed),
      recoveryCrashes: sum(({ recoveryCrashes }) => recoveryCrashes),
      worldDeaths: sum(({ worldDeaths }) => worldDeaths),
      ...counts,
    },
    latencies: { "recovery of a group": spreadOf(runs.map(({ recoveryMs }) => recoveryMs)) },
    violations: found(),
  };
}
