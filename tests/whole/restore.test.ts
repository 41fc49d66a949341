import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { isSallyportError, verifyStore } from "sallyport";
import { fileAnchorSink, generateSigningKey } from "sallyport/audit";
import { sqliteStore } from "sallyport/store/sqlite";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { main } from "../../src/cli/main.ts";
import { openStore, storeFile } from "../../src/cli/open-store.ts";
import { backupDatabase } from "../../src/store/sqlite/database.ts";
import { createDice } from "../support/dice.ts";
import { freshDatabase } from "../support/postgres-database.ts";
import { record } from "../support/record.ts";
import { scaled } from "../support/scale.ts";
import { ADA, drillPort, type GivenYes, linesOf, placesIn, TENANT } from "./restore-world.ts";

const SEED = process.env["RESTORE_SEED"] ?? String(Date.now());
const DRILLS = scaled({ test: 4, proof: 10, full: 100 });
const CHILD = path.join(import.meta.dirname, "restore-child.ts");
/** Long enough for a busy machine: an intent that is confirmed late is not acted on. */
const LEASE_MS = 500;
const signing = generateSigningKey();
const publicKeys = [signing.publicKey];

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  // A machine that is busy with other things may take its time.
  for (const end = performance.now() + 60_000; performance.now() < end; await sleep(10)) {
    if (await holds()) return;
  }
  throw new Error(`void: ${what} did not happen`);
}

/** The command line, in this process; what it says is not for our screen. */
async function sallyport(...args: readonly string[]): Promise<void> {
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  onTestFinished(() => void vi.restoreAllMocks());
  expect(await main(args)).toBe(0);
}

interface Drill {
  readonly way: "by the command" | "by hand";
  readonly approvalsBefore: number;
  readonly effectsAfterBackup: number;
  readonly onTheirWay: number;
  readonly reExecutions: number;
  readonly noticed: boolean;
  readonly noticedByAnchors: boolean;
  readonly executedWhileUnnoticed: number;
  readonly worksAgain: boolean;
}

async function drill(number: number): Promise<Drill> {
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-restore-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { data, ledger, yeses, anchors, key, copy } = placesIn(folder);
  writeFileSync(key, signing.privateKey);
  const way = number % 2 === 0 ? "by hand" : "by the command";

  const dice = createDice(`${SEED}-${number}`);
  // Load; a backup at some moment of it; more load; and the end without a word.
  const flags = ["--conditions=sallyport-source", "--disable-warning=ExperimentalWarning"];
  const child = spawn(process.execPath, [...flags, CHILD, folder, String(number)], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await until("load", () => linesOf(ledger).length > 5);
  await sleep(dice.below(120));
  await backupDatabase(storeFile({ data: data }), copy, () => {});
  const atBackup = linesOf(ledger).length;
  const seq = await entriesIn(copy);
  await until("effects after the backup", () => linesOf(ledger).length > atBackup + 3);
  await until("an anchor after the backup", async () => (await lastAnchor(anchors)) > seq);
  await sleep(dice.below(60));
  child.kill("SIGKILL");
  await once(child, "exit");
  const given = linesOf(yeses).map((line): GivenYes => JSON.parse(line));
  const before = linesOf(ledger);

  // The old copy in place of the store. By hand, the first thing that would happen is refused.
  for (const end of ["", "-wal", "-shm"])
    rmSync(`${storeFile({ data: data })}${end}`, { force: true });
  let noticed = false;
  let noticedByAnchors = false;
  if (way === "by hand") {
    copyFileSync(copy, storeFile({ data: data }));
    noticed = await isNoticed(data, ledger, given);
    noticedByAnchors = await anchorsObject(data, anchors);
  } else {
    noticedByAnchors = await anchorsObject(path.dirname(copy), anchors, copy);
  }
  const executedWhileUnnoticed = linesOf(ledger).length - before.length;
  if (way === "by hand") await sallyport("--data", data, "store", "restored", "--as", "person:op");
  else await sallyport("--data", data, "store", "restore", copy, "--as", "person:op");

  // Everything is tried once more: the upkeep, the person's open pages, the inbox.
  const store = await openStore({ data });
  try {
    const gate = drillPort(store, ledger);
    const trail = await gate.audit.read({ after: seq - 1, limit: 1_000 });
    if (way === "by the command") noticed = trail.some(({ type }) => type === "store.restored");
    await tryEverything(gate, given);
    expect(await gate.killSwitch.isStopped()).toBe(true);
    await gate.killSwitch.resume("looked at", { actor: "person:op" });
    await sleep(250);
    await tryEverything(gate, given);
    const after = linesOf(ledger);
    const session = gate.sessions.open({ agent: "agent:new" });
    const fresh = await session.call({
      callId: "f",
      tool: "world.plain",
      input: { n: `new-${number}` },
    });
    const id = fresh.answer === "pending" ? fresh.decisionId : "";
    const { hash } = await gate.interactions.get(id);
    const { answers } = await gate.interactions.approve(id, { hash, by: ADA });
    const { ok } = await verifyStore(store);
    return {
      way,
      approvalsBefore: given.length,
      effectsAfterBackup: before.length - atBackup,
      onTheirWay: trail.filter(({ type }) => type === "operation.lost").length,
      reExecutions: after.length - new Set(after).size + (after.length - before.length),
      noticed,
      noticedByAnchors,
      executedWhileUnnoticed,
      worksAgain:
        ok && answers[0]?.answer === "done" && linesOf(ledger).length === after.length + 1,
    };
  } finally {
    await store.close();
  }
}

async function entriesIn(file: string): Promise<number> {
  const store = sqliteStore({ file });
  try {
    return (await store.tenant(TENANT).audit.head()).seq;
  } finally {
    await store.close();
  }
}

async function lastAnchor(file: string): Promise<number> {
  let last = 0;
  for await (const { seq } of fileAnchorSink({ file }).read()) last = Math.max(last, seq);
  return last;
}

/** Nothing begins: not what was approved, not what is approved now. The refusal says what to do. */
async function isNoticed(
  data: string,
  ledger: string,
  given: readonly GivenYes[],
): Promise<boolean> {
  const store = await openStore({ data });
  try {
    const gate = drillPort(store, ledger, LEASE_MS);
    await sleep(5);
    const { operations, decisions } = await gate.recover();
    const done = [
      ...operations.map(({ answer }) => answer),
      ...decisions.flatMap(({ answers }) => answers),
    ];
    if (done.some(({ answer }) => answer === "done")) return false;
    for (const { id, hash } of given)
      await gate.interactions.approve(id, { hash, by: ADA }).catch(coded);
    const session = gate.sessions.open({ agent: "agent:eager" });
    const asked = await session.call({ callId: "e", tool: "world.plain", input: { n: "eager" } });
    const id = asked.answer === "pending" ? asked.decisionId : "";
    const { hash } = await gate.interactions.get(id);
    const refused = await gate.interactions.approve(id, { hash, by: ADA }).catch(coded);
    return (
      refused instanceof Error &&
      isSallyportError(refused, "store_rolled_back") &&
      refused.message.includes("sallyport store restored")
    );
  } finally {
    await store.close();
  }
}

/** The anchors show that the log was longer. */
async function anchorsObject(
  data: string,
  anchors: string,
  file = storeFile({ data: data }),
): Promise<boolean> {
  const store = sqliteStore({ file });
  try {
    const { ok, problems } = await verifyStore(store, {
      anchors: fileAnchorSink({ file: anchors }).read(),
      publicKeys,
    });
    return !ok && problems.length > 0;
  } finally {
    await store.close();
  }
}

async function tryEverything(
  gate: ReturnType<typeof drillPort>,
  given: readonly GivenYes[],
): Promise<void> {
  await gate.recover();
  for (const { id, hash } of given)
    await gate.interactions.approve(id, { hash, by: ADA }).catch(coded);
  for (const { id, hash, type } of await gate.interactions.list({ limit: 1_000 })) {
    if (type === "confirm") await gate.interactions.approve(id, { hash, by: ADA }).catch(coded);
    else await gate.interactions.settle(id, { hash, by: ADA, happened: true }).catch(coded);
  }
  await gate.recover();
}

/** A refusal is one of ours; anything else fails the test. */
function coded(error: unknown): Error {
  if (isSallyportError(error)) return error;
  throw error;
}

test(
  `restored backups bring no approval back, and every rollback is noticed (seed ${SEED}) [T37 G21 I27]`,
  async () => {
    const numbers = Array.from({ length: DRILLS }, (_, n) => n);
    const drills: Drill[] = [];
    const lane = async () => {
      for (let n = numbers.shift(); n !== undefined; n = numbers.shift())
        drills.push(await drill(n));
    };
    await Promise.all([lane(), lane()]);
    const sum = (of: (one: Drill) => number) => drills.reduce((total, one) => total + of(one), 0);
    const figures = {
      drills: drills.length,
      "by hand": drills.filter(({ way }) => way === "by hand").length,
      "approvals before": sum(({ approvalsBefore }) => approvalsBefore),
      "effects after the backup": sum(({ effectsAfterBackup }) => effectsAfterBackup),
      "calls on their way at the backup": sum(({ onTheirWay }) => onTheirWay),
      "re-executions": sum(({ reExecutions }) => reExecutions),
      "executed before it was noticed": sum(({ executedWhileUnnoticed }) => executedWhileUnnoticed),
      "rollbacks noticed": drills.filter(({ noticed }) => noticed).length,
      "rollbacks seen by anchors": drills.filter(({ noticedByAnchors }) => noticedByAnchors).length,
      "usable afterwards": drills.filter(({ worksAgain }) => worksAgain).length,
    };
    record({
      goal: "G21",
      what: "backup under load, kill, restore, restart (SQLite)",
      figures,
      seed: SEED,
    });
    expect(figures.drills, "void: too few drills").toBe(DRILLS);
    expect(figures["effects after the backup"], "void: nothing was lost").toBeGreaterThan(
      3 * DRILLS,
    );
    const inFlight = scaled({ test: 0, proof: 1, full: 20 });
    expect(
      figures["calls on their way at the backup"],
      "void: too few in flight",
    ).toBeGreaterThanOrEqual(inFlight);
    expect(figures).toMatchObject({
      "re-executions": 0,
      "executed before it was noticed": 0,
      "rollbacks noticed": DRILLS,
      "rollbacks seen by anchors": DRILLS,
      "usable afterwards": DRILLS,
    });
  },
  60_000 + 60_000 * DRILLS,
);

test("on PostgreSQL a restored database executes nothing until the operator confirms, and no old approval after [T37 I27]", async () => {
  const live = await freshDatabase(inject("pgUrl"));
  const folder = mkdtempSync(path.join(tmpdir(), "sallyport-restore-"));
  onTestFinished(async () => {
    await live.drop();
    rmSync(folder, { recursive: true, force: true });
  });
  const { data, ledger } = placesIn(folder);
  const place = { data, database: live.url };
  const copy = await copyOf(live.url, async () => {
    // What the backup holds: one approved and cut off, one that waits.
    const store = await openStore(place);
    const gate = drillPort(store, ledger);
    const session = gate.sessions.open({ agent: "agent:one" });
    for (const n of ["approved", "waiting"])
      await session.call({ callId: n, tool: "world.plain", input: { n }, key: n });
    const [first] = await gate.interactions.list();
    const { interactions } = store.tenant(TENANT);
    const hash = (await interactions.shown(first?.id ?? ""))?.hash ?? "";
    const verdict = {
      approved: true,
      score: 1,
      severity: "",
      reason: "",
      validator: ADA,
      policyVersion: "1",
    } as const;
    await interactions.approve(first?.id ?? "", { hash, by: ADA, verdict });
    await store.close();
  });
  onTestFinished(() => copy.drop());

  // Both are executed. Then the old copy is restored under the same name.
  const store = await openStore(place);
  const gate = drillPort(store, ledger, LEASE_MS);
  await sleep(LEASE_MS);
  await gate.recover();
  const given = await gate.interactions.list();
  for (const { id, hash } of given) await gate.interactions.approve(id, { hash, by: ADA });
  expect(linesOf(ledger).toSorted()).toEqual(["approved", "waiting"]);
  await store.close();
  await copy.putBack();

  const back = await openStore(place);
  expect((await drillPort(back, ledger, LEASE_MS).recover()).left[0]?.reason).toContain(
    "sallyport store restored",
  );
  await back.close();
  await sallyport("--data", data, "store", "restored", "--database", live.url);
  const again = await openStore(place);
  const after = drillPort(again, ledger, LEASE_MS);
  await after.killSwitch.resume("looked at", { actor: "person:op" });
  await tryEverything(after, given);
  expect(linesOf(ledger)).toHaveLength(2);
  expect((await after.decisions.list()).map(({ state }) => state).toSorted()).toEqual([
    "failed",
    "rejected_ml",
  ]);
  expect(await verifyStore(again)).toMatchObject({ ok: true });
  await again.close();
});

/** A copy of a database as a backup would have it; the copy that the server makes is as good as a dump and a restore. */
async function copyOf(url: string, fill: () => Promise<void>) {
  await fill();
  const name = new URL(url).pathname.slice(1);
  const admin = new URL(url);
  admin.pathname = "/postgres";
  const execute = async (sql: string) => {
    const client = new pg.Client({ connectionString: admin.href });
    await client.connect();
    await client.query(sql).finally(() => client.end());
  };
  await execute(`CREATE DATABASE ${name}_copy TEMPLATE ${name}`);
  return {
    async putBack() {
      await execute(`DROP DATABASE ${name} WITH (FORCE)`);
      await execute(`CREATE DATABASE ${name} TEMPLATE ${name}_copy`);
    },
    drop: () => execute(`DROP DATABASE IF EXISTS ${name}_copy WITH (FORCE)`),
  };
}
