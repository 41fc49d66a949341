// Real processes are killed with SIGKILL at the points of the threat model's Part 4; then others recover. What production has
// seen (a process of its own, with a ledger of its own), what the store says and what the trail tells must agree.

import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, inject, test } from "vitest";
import { verifyStore } from "../../src/audit/verify.ts";
import { type Counts, checkCases } from "../support/crash-check.ts";
import { type Case, type ChildPlan, openStore } from "../support/crash-child.ts";
import { historyOf, inParallel, runChild, startWorld } from "../support/crash-run.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import {
  bundles,
  lostAnswers,
  type Planned,
  RECOVERY_POINTS,
  STORES,
  type StoreKind,
  singleCalls,
} from "./plan.ts";

const IS_FULL = process.env["SCALE"] === "full";
const TIMEOUT = IS_FULL ? 3_600_000 : 60_000;
// Which part of the matrix a run takes; CRASH_SEED repeats one.
const SEED = Number(process.env["CRASH_SEED"] ?? Math.floor(Math.random() * 1_000));
/** Cases that share a store and are recovered together. */
const GROUP = 60;
const AT_ONCE = 3;
/** On a busy machine a process may lose its lease, and with it the way past its point; then another one goes. */
const TRIES = 3;

const root = await mkdtemp(path.join(tmpdir(), "sallyport-crash-"));
afterAll(() => rm(root, { recursive: true }));

interface Happened extends Counts {
  crashes: number;
  /** Processes that did not come past the point where they were to be killed. */
  missed: number;
  recoveryCrashes: number;
  worldDeaths: number;
}

test("every run takes enough of the matrix, and six in a row take all of it", () => {
  const nameOf = ({ store, one }: Planned) => `${store} ${one.kind} ${one.crashAt}`;
  const runs = Array.from({ length: 6 }, (_, at) => singleCalls(SEED + at, false).map(nameOf));
  for (const run of runs) expect(new Set(run).size).toBeGreaterThanOrEqual(24);
  expect(new Set(runs.flat())).toEqual(new Set(singleCalls(SEED, true).map(nameOf)));
});

for (const store of STORES) {
  test(`T8 I5 I6 I7 I9 I14 one call killed at each crash point: ${store}`, {
    timeout: TIMEOUT,
  }, async () => {
    const planned = singleCalls(SEED, IS_FULL).filter((one) => one.store === store);
    const happened = await crashAll(store, planned);
    expect(happened.crashes, "void: too few crashes").toBe(planned.length);
    expect(happened.crashes).toBeGreaterThanOrEqual(IS_FULL ? 600 : 10);
    expect(happened.recoveryCrashes, "void: no recovery was cut off").toBeGreaterThan(0);
    expect(happened.takenOver, "void: nothing was recovered").toBeGreaterThan(0);
  });

  test(`T9 I28 a bundle killed in its steps and in its compensation: ${store}`, {
    timeout: TIMEOUT,
  }, async () => {
    const planned = bundles(SEED, IS_FULL).filter((one) => one.store === store);
    const happened = await crashAll(store, planned);
    expect(happened.crashes, "void: too few crashes").toBe(planned.length);
    expect(happened.crashes).toBeGreaterThanOrEqual(IS_FULL ? 120 : 5);
    expect(happened.takenOver, "void: nothing was recovered").toBeGreaterThan(0);
  });
}

test("T8 an answer that production never gives is found out or told as unknown", {
  timeout: TIMEOUT,
}, async () => {
  const planned = lostAnswers();
  let deaths = 0;
  for (const store of STORES) {
    const ours = planned.filter((one) => one.store === store);
    deaths += (await crashAll(store, ours, { atOnce: 1 })).worldDeaths;
  }
  expect(deaths, "void: production did not die").toBe(3);
});

/** Kills one process per case, then recovers, once with a kill in the middle, and looks at everything. */
async function crashAll(
  store: StoreKind,
  planned: readonly Planned[],
  { atOnce = AT_ONCE } = {},
): Promise<Happened> {
  const happened: Happened = {
    crashes: 0,
    missed: 0,
    recoveryCrashes: 0,
    worldDeaths: 0,
    acknowledged: 0,
    effects: 0,
    repeatedKeys: 0,
    takenOver: 0,
    executed: 0,
    failed: 0,
    compensated: 0,
    unknown: 0,
    leftPending: 0,
  };
  const problems: string[] = [];
  for (let first = 0; first < planned.length; first += GROUP) {
    const cases = planned.slice(first, first + GROUP).map(({ one }) => one);
    const cutOff = RECOVERY_POINTS[(SEED + first / GROUP) % RECOVERY_POINTS.length] ?? "";
    problems.push(...(await crashGroup(store, cases, happened, { atOnce, cutOff })));
  }
  console.log(
    `${store}, CRASH_SEED=${SEED}: ${planned.length} cases, ${JSON.stringify(happened)}, ` +
      `${problems.length} violations`,
  );
  expect(problems).toEqual([]);
  return happened;
}

async function crashGroup(
  kind: StoreKind,
  planned: readonly Case[],
  happened: Happened,
  { atOnce, cutOff }: { readonly atOnce: number; readonly cutOff: string },
): Promise<readonly string[]> {
  const dir = await mkdtemp(path.join(root, `${kind}-`));
  await mkdir(path.join(root, "compile-cache"), { recursive: true });
  const database = kind === "postgres" ? await freshDatabase(inject("pgUrl")) : undefined;
  const place = database?.url ?? path.join(dir, "store.db");
  // Opened first, so that no child is killed while it makes the tables, which is another test's matter.
  const { store, close } = await openStore({ store: kind, place });
  const world = await startWorld(dir);
  const history = path.join(dir, "history.jsonl");
  const plan: Omit<ChildPlan, "mode" | "cases"> = {
    store: kind,
    place,
    world: world.port,
    history,
  };
  try {
    const cases: Case[] = [];
    await inParallel(planned, atOnce, async (wanted) => {
      for (let tries = 1; tries <= TRIES; tries += 1) {
        const one = { ...wanted, id: tries === 1 ? wanted.id : `${wanted.id}-${tries}` };
        cases.push(one);
        const { killed } = await runChild({ ...plan, mode: "act", cases: [one] }, one.crashAt);
        if (killed) happened.crashes += 1;
        if (killed || one.crashAt === "") return;
        happened.missed += 1;
      }
    });
    const lookAt = () => ({ cases, store, ledger: world.ledger(), history: historyOf(history) });
    const lost = await checkCases(lookAt(), happened, "killed");
    const recovery: ChildPlan = { ...plan, mode: "recover", cases };
    if ((await runChild(recovery, cutOff)).killed) happened.recoveryCrashes += 1;
    await runChild(recovery);
    happened.worldDeaths += world.deaths();
    const problems = [...lost, ...(await checkCases(lookAt(), happened))];
    const { problems: broken } = await verifyStore(store, {});
    return [...problems, ...broken.map((problem) => `I17 ${JSON.stringify(problem)}`)];
  } finally {
    await world.stop();
    await close();
    await database?.drop();
  }
}
