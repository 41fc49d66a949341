// What the shipped server remembers outside its data folder: signed anchors, and how far the store was.

import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import Sqlite from "better-sqlite3";
import { expect, test, vi } from "vitest";
import { type CliPlace, cliPlace } from "./cli-process.ts";

const root = path.resolve(import.meta.dirname, "../..");
const from = (file: string) => pathToFileURL(path.join(root, "src", file)).href;

/** A bank whose one payment waits for a yes; STEP says what the host does when it has started. */
const BANK = `
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { NO_RULES } from "${from("policy/policy.ts")}";
import { allowAlways } from "${from("gate/review.ts")}";
import { defineTool } from "${from("tools/define-tool.ts")}";
import { fileTools } from "${from("tools/builtin/files.ts")}";
import { fileAnchorSink } from "${from("audit/anchor.ts")}";
import { createSigner, generateSigningKey } from "${from("audit/anchor.ts")}";
const { OWN } = process.env;
const own = OWN === undefined ? {} : {
  anchors: { sink: fileAnchorSink({ file: OWN + ".anchors" }), signer: createSigner(generateSigningKey()) },
  redactionKey: "0123456789abcdef",
  epochFile: OWN + ".epoch",
};
const { STEP = "", LEDGER = "", RESULT = "", READ = "", ROOT = "" } = process.env;
const yes = { name: "yes", review: async () => ({ approved: true, score: 1, severity: "", reason: "ok", validator: "yes", policyVersion: "1" }) };
const pay = defineTool({
  name: "bank.pay",
  description: "Pays.",
  input: { type: "object", properties: { cents: { type: "integer" } }, required: ["cents"], additionalProperties: false },
  safety: { effect: "external", reversible: false },
  execute({ input }) { appendFileSync(LEDGER, "paid " + input.cents + "\\n"); return "paid"; },
});
const STEPS = {
  async ask(port) {
    const session = port.sessions.open({ id: "s1", agent: "agent:one" });
    return session.call({ callId: "c1", tool: "bank.pay", input: { cents: 100 }, key: "k1" });
  },
  async approve(port) {
    const [open] = await port.interactions.list({ limit: 10 });
    const { answers } = await port.interactions.approve(open.id, { hash: open.hash, by: "person:ada" });
    return answers[0];
  },
  async read(port) {
    while (!existsSync(READ)) await new Promise((resolve) => setTimeout(resolve, 20));
    const session = port.sessions.open({ id: "s2", agent: "agent:one" });
    return session.call({ callId: "c2", tool: "files.read", input: { path: READ } });
  },
};
export default {
  ...own,
  tools: [pay, ...fileTools()],
  validators: { tech: yes, business: yes },
  guard: allowAlways,
  policy: NO_RULES,
  fileRoots: ROOT === "" ? [] : [{ path: ROOT, access: "read" }],
  started(port) {
    const work = STEPS[STEP]?.(port).then((answer) => ({ answer }), (error) => ({ code: error.code ?? String(error) }));
    work?.then((result) => writeFileSync(RESULT, JSON.stringify(result)));
    return async () => { await work; };
  },
};
`;

interface Bank {
  readonly place: CliPlace;
  readonly env: Record<string, string>;
  step(
    name: string,
    ...args: readonly string[]
  ): Promise<{ readonly text: string; readonly said: string }>;
  paid(): string;
}

function openBank(dataName?: string): Bank {
  const env: Record<string, string> = {};
  const place = cliPlace(env, dataName);
  const config = path.join(place.folder, "bank.mjs");
  writeFileSync(config, BANK);
  const LEDGER = path.join(place.folder, "ledger.txt");
  const RESULT = path.join(place.folder, "result.json");
  return {
    place,
    env,
    async step(name, ...args) {
      rmSync(RESULT, { force: true });
      Object.assign(env, { STEP: name, LEDGER, RESULT });
      const server = await place.start("serve", "--config", config, ...args);
      await vi.waitFor(() => expect(existsSync(RESULT)).toBe(true), { timeout: 100_000 });
      expect(await server.stop()).toBe(0);
      return { text: readFileSync(RESULT, "utf8"), said: server.said() };
    },
    paid: () => (existsSync(LEDGER) ? readFileSync(LEDGER, "utf8") : ""),
  };
}

/** Lets the demo write until its trail is long enough, then ends it. */
async function demoWithEntries(place: CliPlace, ...args: readonly string[]): Promise<void> {
  const demo = await place.start("demo", "--every", "100", ...args);
  await vi.waitFor(() => expect(entriesIn(place)).toBeGreaterThan(60), {
    timeout: 100_000,
    interval: 200,
  });
  expect(await demo.stop()).toBe(0);
}

const storeOf = (place: CliPlace) => path.join(place.data, "sallyport.db");

function entriesIn(place: CliPlace): number {
  const database = new Sqlite(storeOf(place), { readonly: true });
  try {
    return Number(database.prepare("SELECT max(last) FROM audit_blocks").pluck().get());
  } finally {
    database.close();
  }
}

function cutTail(place: CliPlace, entries: number): void {
  const database = new Sqlite(storeOf(place));
  database.exec(
    `DELETE FROM audit_blocks WHERE ord > (SELECT max(ord) FROM audit_blocks) - ${entries}`,
  );
  database.close();
}

test("audit verify: with the default anchors the whole trail is covered, and a deleted tail is reported [M5]", async () => {
  const place = cliPlace();
  await demoWithEntries(place);
  const whole = await place.run("audit", "verify");
  expect(whole.out).toMatch(
    /^Verified \d+ entries\. The chain is intact; the tail is covered by an anchor from \d+ (ms|s) ago\./,
  );
  expect(whole.code).toBe(0);
  cutTail(place, 20);
  const cut = await place.run("audit", "verify");
  expect(cut.out).toContain("cut_off");
  expect(cut.code).toBe(6);
  const check = await place.run("store", "check");
  expect(check.code).toBe(6);
});

test("audit verify: without anchors it says what it could not check, with a distinct exit code [M5 W6]", async () => {
  const place = cliPlace();
  await demoWithEntries(place, "--no-anchors");
  const { code, out } = await place.run("audit", "verify");
  expect(out).toMatch(
    /^Verified \d+ entries\. No entry between the first and the last was changed; without an anchor it cannot be known whether entries are missing at the end\./,
  );
  expect(out).not.toContain("nobody");
  expect(code).toBe(5);
  // The epoch file still knows how many there were.
  cutTail(place, 20);
  const cut = await place.run("audit", "verify");
  expect(cut.out).toContain("cut_off");
  expect(cut.code).toBe(6);
});

test("serve: --no-anchors prints a warning, and by default key and anchors are outside the data folder [M5]", async () => {
  const place = cliPlace();
  const loud = await place.start("serve", "--no-anchors");
  expect(loud.said()).toContain("Anchors are off");
  await loud.stop();
  const quiet = await place.start("serve");
  await quiet.stop();
  expect(quiet.said()).not.toContain("Anchors are off");
  const names = readdirSync(place.state, { recursive: true, encoding: "utf8" });
  expect(names.map((name) => path.basename(name))).toEqual(
    expect.arrayContaining(["anchor-key.pem", "anchors.jsonl", "sallyport.epoch"]),
  );
  const beside = readdirSync(place.data).filter((name) => /anchor|epoch|key/.test(name));
  expect(beside).toEqual([]);
});

test("serve: after an old copy of the whole data folder put back nothing is executed: the payment is made once [M6]", async () => {
  const { place, step, paid } = openBank();
  expect((await step("ask")).text).toContain("pending");
  const copy = path.join(place.folder, "copy");
  cpSync(place.data, copy, { recursive: true });
  expect((await step("approve")).text).toContain("done");
  expect(paid()).toBe("paid 100\n");
  rmSync(place.data, { recursive: true });
  cpSync(copy, place.data, { recursive: true });
  const again = await step("approve");
  expect(paid()).toBe("paid 100\n");
  expect(again.text).toContain("store_rolled_back");
  const verified = await place.run("audit", "verify");
  expect(verified.code).toBe(6);
  // An operator who says so gets a new life of the store, with new anchors; the old ones are kept.
  expect(await place.run("store", "restored")).toMatchObject({ code: 0 });
  await (await place.start("serve")).stop();
  const after = await place.run("audit", "verify");
  expect(after.out).toContain("the tail is covered by an anchor");
  expect(after.code).toBe(0);
  const kept = readdirSync(place.state, { recursive: true, encoding: "utf8" });
  expect(kept.filter((name) => name.includes("anchors-before-"))).toHaveLength(1);
}, 90_000);

test("serve: an epoch file in the data folder is moved to the state folder, and the higher number wins [M6]", async () => {
  const { place, step } = openBank();
  await step("ask");
  const [id = ""] = readdirSync(place.state);
  const now = path.join(place.state, id, "sallyport.epoch");
  const before = path.join(place.data, "sallyport.epoch");
  const known = JSON.parse(readFileSync(now, "utf8"));
  renameSync(now, before);
  const server = await place.start("serve");
  await server.stop();
  expect(existsSync(before)).toBe(false);
  expect(JSON.parse(readFileSync(now, "utf8")).entries).toBeGreaterThanOrEqual(known.entries);
  // One that remembers more than the store holds is believed, wherever it is found.
  writeFileSync(before, `${JSON.stringify({ epoch: "", entries: 9_999 }).padEnd(255)}\n`);
  expect((await step("approve")).text).toContain("store_rolled_back");
  expect(JSON.parse(readFileSync(now, "utf8"))).toMatchObject({
    entries: 9_999,
    isRolledBack: true,
  });
});

test("serve: a store without its state folder is served, with one warning [M6]", async () => {
  const place = cliPlace();
  const first = await place.start("demo");
  await first.stop();
  expect(first.said()).not.toContain("no state");
  rmSync(place.state, { recursive: true });
  const second = await place.start("serve");
  await second.stop();
  expect(second.said()).toContain("There was no state folder for this store");
  expect(second.said()).toContain(place.state);
  const third = await place.start("serve");
  await third.stop();
  expect(third.said()).not.toContain("There was no state folder");
});

test("serve: --state and --epoch-file set the locations, and doctor prints them [M6]", async () => {
  const place = cliPlace();
  const state = path.join(place.folder, "elsewhere");
  const epoch = path.join(place.folder, "epochs", "mine.epoch");
  mkdirSync(path.dirname(epoch));
  const flags = ["--state", state, "--epoch-file", epoch];
  await (await place.start("serve", ...flags)).stop();
  expect(existsSync(epoch)).toBe(true);
  expect(existsSync(place.state)).toBe(false);
  const { out } = await place.run("doctor", ...flags);
  expect(out).toMatch(/^ok {2}file modes: /m);
  expect(out).toMatch(/^ok {2}anchors: on; the last one is from \d+ (ms|s) ago/m);
  expect(out).toMatch(new RegExp(`^ok {2}epoch file: ${epoch}`, "m"));
});

test("serve: file tools never read the data folder, whatever its name and state [H2]", async () => {
  for (const name of [".sallyport", "gate-data"]) {
    const { place, env, step } = openBank(name);
    Object.assign(env, { ROOT: place.folder, READ: path.join(place.data, "local.json") });
    const { text } = await step("read");
    expect(text).toContain("denied");
    expect(text).toContain("danger.gate-files");
    expect(text).not.toContain("token");
  }
});

test("serve: a config module sets the locations of anchors and epoch file, and the redaction key [M5]", async () => {
  const { place, env, step } = openBank();
  const own = path.join(place.folder, "own");
  Object.assign(env, { OWN: own });
  await step("ask");
  expect(readFileSync(`${own}.anchors`, "utf8")).toContain('"sig"');
  expect(JSON.parse(readFileSync(`${own}.epoch`, "utf8")).entries).toBeGreaterThan(0);
  const names = readdirSync(place.state, { recursive: true, encoding: "utf8" });
  expect(names.filter((name) => /anchor|epoch/.test(name))).toEqual([]);
});
