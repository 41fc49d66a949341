// Runs cases of the crash kit over fresh stores, group by group, and adds up what happened.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { inject } from "vitest";
import { type Case, type CasesRun, runCrashCases } from "../../src/crashkit/cases/run-cases.ts";
import type { StoreAt } from "../../src/crashkit/open-kit.ts";
import { addCounts, NO_COUNTS } from "../../src/crashkit/report.ts";
import { freshDatabase } from "./postgres-database.ts";

export type StoreKind = StoreAt["kind"];
export const STORES: readonly StoreKind[] = ["sqlite", "postgres"];

/** Which part of a matrix a run takes; CRASH_SEED repeats one. */
export const SEED = Number(process.env["CRASH_SEED"] ?? Math.floor(Math.random() * 1_000));

/** Recoveries are cut off as well, at one of these. */
const RECOVERY_POINTS = ["S5.after:1", "S6.before:1", "S6.after:1", "S7.before:2"] as const;
/** Other tests run beside these, and an intent that is confirmed after its lease is given up. */
const LEASE_MS = 2_000;
/** Cases that share a store and are recovered together. */
const GROUP = 60;

/** Hundreds of children compile the same files. */
export const CACHE = path.resolve("node_modules/.compile-cache");

/** A new store and a folder of its own; both are removed afterwards. */
export function withStore<Result>(
  kind: StoreKind,
  work: (at: StoreAt, folder: string) => Promise<Result>,
): Promise<Result> {
  return withFolder(async (folder) => {
    if (kind === "sqlite") return work({ kind, file: path.join(folder, "store.db") }, folder);
    const database = await freshDatabase(inject("pgUrl"));
    try {
      return await work({ kind, url: database.url }, folder);
    } finally {
      await database.drop();
    }
  });
}

/** For a store that the caller brings. */
export async function withFolder<Result>(
  work: (folder: string) => Promise<Result>,
): Promise<Result> {
  const folder = await mkdtemp(path.join(tmpdir(), "sallyport-crash-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Kills one process per case, then recovers, once with a kill in the middle, and looks at everything. */
export async function crashAll(
  kind: StoreKind,
  cases: readonly Case[],
  { atOnce = 3, cutOff = true } = {},
): Promise<CasesRun> {
  let sum: CasesRun = {
    crashes: 0,
    missed: 0,
    recoveryCrashes: 0,
    worldDeaths: 0,
    recoveryMs: 0,
    counts: NO_COUNTS,
    violations: [],
  };
  for (let first = 0; first < cases.length; first += GROUP) {
    const at = RECOVERY_POINTS[(SEED + first / GROUP) % RECOVERY_POINTS.length] ?? "";
    const group = cases.slice(first, first + GROUP);
    const ran = await withStore(kind, (store, folder) =>
      runCrashCases({
        run: "acme",
        store,
        folder,
        cache: CACHE,
        cases: group,
        atOnce,
        cutOff: cutOff ? at : "",
        leaseMs: LEASE_MS,
      }),
    );
    sum = added(sum, ran);
  }
  const { counts, violations, ...more } = sum;
  console.log(
    `${kind}, CRASH_SEED=${SEED}: ${cases.length} cases, ${JSON.stringify({ ...more, ...counts })}, ` +
      `${violations.length} violations${violations
        .slice(0, 5)
        .map(({ id, problem }) => `\n${id} ${problem}`)
        .join("")}`,
  );
  return sum;
}

function added(sum: CasesRun, ran: CasesRun): CasesRun {
  return {
    crashes: sum.crashes + ran.crashes,
    missed: sum.missed + ran.missed,
    recoveryCrashes: sum.recoveryCrashes + ran.recoveryCrashes,
    worldDeaths: sum.worldDeaths + ran.worldDeaths,
    recoveryMs: Math.max(sum.recoveryMs, ran.recoveryMs),
    counts: addCounts(sum.counts, ran.counts),
    violations: [...sum.violations, ...ran.violations],
  };
}
