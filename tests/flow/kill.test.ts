// A run of ten steps with two confirmations, a plan to accept and a question, killed with SIGKILL after its events and started
// again: production must have seen every step exactly once, and the summary, which tells every result the agent was given,
// must be the same as without kills.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { createRedactor } from "../../src/audit/redact.ts";
import { verifyStore } from "../../src/audit/verify.ts";
import { inParallel } from "../../src/crashkit/child.ts";
import { createStore } from "../../src/store/store.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { type KillPlan, openEngine, TENANT } from "./kill-child.ts";
import { type KillCase, killCase, problemsOf, runProcess } from "./kill-run.ts";

const IS_FULL = process.env["SCALE"] === "full";
const STORES: readonly KillPlan["store"][] = IS_FULL ? ["sqlite", "postgres"] : ["sqlite"];
const TIMEOUT = IS_FULL ? 3_600_000 : 300_000;
const NEVER = { killAfter: 0, onlyNew: false };
// Which part of the events a run takes; KILL_SEED repeats one.
const SEED = Number(process.env["KILL_SEED"] ?? Math.floor(Math.random() * 1_000));
/** Kills of one event each that are spread over the run, when not all are wanted. */
const SPREAD = 4;
/** How many new events each process of the chain gets to see, when not one. */
const STRIDE = 9;

const root = await mkdtemp(path.join(tmpdir(), "sallyport-flow-kill-"));
afterAll(() => rm(root, { recursive: true }));

describe.each(STORES)("on %s", (kind) => {
  const databases: { readonly url: string; drop(): Promise<void> }[] = [];
  let events: readonly string[] = [];
  let summary = "";

  async function newCase(): Promise<KillCase> {
    if (kind === "sqlite") return killCase(root, { store: kind });
    const database = await freshDatabase(inject("pgUrl"));
    databases.push(database);
    return killCase(root, { store: kind, place: database.url });
  }

  beforeAll(async () => {
    const whole = await newCase();
    await runProcess(whole, NEVER);
    events = whole.events();
    summary = whole.summaries()[0] ?? "";
    expect(problemsOf(whole, summary)).toEqual([]);
    expect(summary.match(/Result \(done\)/g)).toHaveLength(10);
  }, TIMEOUT);
  afterAll(async () => {
    for (const database of databases) await database.drop();
  }, TIMEOUT);

  async function killOnce(killAfter: number): Promise<string[]> {
    const one = await newCase();
    const { killed } = await runProcess(one, { killAfter, onlyNew: false });
    await runProcess(one, NEVER);
    const missed = killed ? [] : ["it was not killed"];
    return [...missed, ...problemsOf(one, summary), ...(await trailProblems(one))];
  }

  /** Killed once after each of these events (from 1), started again and left alone. */
  async function killAt(places: readonly number[]): Promise<void> {
    const problems: string[] = [];
    await inParallel(places, 2, async (killAfter) => {
      const found = await killOnce(killAfter).catch((error) => [String(error)]);
      problems.push(...found.map((text) => `${killAfter} (${events[killAfter - 1]}): ${text}`));
    });
    console.log(`${kind}, KILL_SEED=${SEED}: ${places.length} of ${events.length} events killed`);
    expect(problems).toEqual([]);
  }

  const placesOf = (pattern: RegExp) =>
    events.flatMap((what, at) => (pattern.test(what) ? [at + 1] : []));

  test("pains 5: killed after every event, each step happens once and each call has one result", {
    timeout: TIMEOUT,
  }, async () => {
    const all = events.map((_, at) => at + 1);
    const every = Math.ceil(all.length / SPREAD);
    await killAt(IS_FULL ? all : all.filter((place) => place % every === SEED % every));
  });

  test("a run killed right after the approval with its intent, or around the effect, continues [R16 R17 I-81]", {
    timeout: TIMEOUT,
  }, async () => {
    const approved = placesOf(/^interaction\.answered\+decision\.reviewed\+operation\.started$/);
    expect(approved).toHaveLength(2);
    const around = placesOf(/effect (4|8)$/);
    expect(around).toHaveLength(4);
    // One of each kind that needs no yes: keyed, probed, and one whose outcome only a person can find out.
    const free = placesOf(/after effect (1|2|3)$/);
    expect(free).toHaveLength(3);
    await killAt([...approved, ...around, ...free]);
  });

  test("pains 5: killed repeatedly, each process one step further than the one before", {
    timeout: TIMEOUT,
  }, async () => {
    const one = await newCase();
    const killAfter = IS_FULL ? 1 : STRIDE;
    let processes = 0;
    // The first one dies somewhere else in every run.
    let kill = { killAfter: IS_FULL ? 1 : 1 + (SEED % STRIDE), onlyNew: true };
    for (; processes < 400; processes += 1) {
      if (!(await runProcess(one, kill)).killed) break;
      kill = { killAfter, onlyNew: true };
    }
    console.log(`${kind}, KILL_SEED=${SEED}: ${processes} processes killed in a row`);
    expect(processes).toBeGreaterThan(IS_FULL ? 60 : 5);
    expect(problemsOf(one, summary)).toEqual([]);
    expect(await trailProblems(one)).toEqual([]);
  });
});

/** The trail must hold, and no decision may be left approved and unattended. */
async function trailProblems({ plan }: KillCase): Promise<string[]> {
  const { engine, close } = await openEngine(plan);
  try {
    const store = createStore(engine, { redact: createRedactor({}) });
    const { problems } = await verifyStore(store, {});
    const left = await store.tenant(TENANT).decisions.listStuck("approved", 0);
    const kept = await store.tenant(TENANT).flowStates.load("talk-1");
    return [
      ...problems.map((problem) => JSON.stringify(problem)),
      ...left.map(({ id }) => `${id} is approved and unattended`),
      ...(kept.found ? ["the snapshot was not cleared"] : []),
    ];
  } finally {
    await close();
  }
}
