// I24, T13, T32: the command line with hostile arguments, folders, modules and servers. It ends with a code and a sentence.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Command } from "commander";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createProgram } from "../../src/cli/main.ts";
import { createDice } from "../support/dice.ts";
import { record } from "../support/record.ts";
import { SCALE, scaled } from "../support/scale.ts";
import { faultOf, pictureOf, runApart, runHere } from "./cli-run.ts";
import { goodStore, SPOILED, SPOILED_ACCESS } from "./hostile-folders.ts";
import { REPLIES, startHostileServer } from "./hostile-server.ts";
import { fuzzSeed } from "./seed.ts";

const RUNS = scaled({ test: 60, proof: 400, full: 3_000 });
const APART = scaled({ test: 1, proof: 8, full: 40 });
const home = process.cwd();
// Whatever a hostile path makes of it, it is made here and not in the checkout.
const sandbox = mkdtempSync(path.join(tmpdir(), "sallyport-cli-fuzz-"));
let count = 0;

beforeAll(() => process.chdir(sandbox));
afterAll(() => {
  process.chdir(home);
  rmSync(sandbox, { recursive: true, force: true });
});

function freshFolder(): string {
  count += 1;
  const folder = path.join(sandbox, `d-${count}`);
  mkdirSync(folder);
  return folder;
}

/** Says what was found, and that enough was tried. */
function settle(
  what: string,
  runs: number,
  wanted: number,
  faults: readonly string[],
  seed: number,
) {
  record({
    goal: "G16",
    what: `command line: ${what}`,
    figures: { runs, faults: faults.length },
    seed,
  });
  expect(faults.slice(0, 10)).toEqual([]);
  expect(runs, "void: too few runs").toBeGreaterThanOrEqual(wanted);
}

const WORDS = [
  "",
  " ",
  "-",
  "--",
  "--__proto__",
  "__proto__",
  "constructor",
  "../../../../etc/passwd",
  "'; DROP TABLE decisions; --",
  "$(id)",
  "{",
  "null",
  "-1",
  "1e400",
  "\u001b[2J",
  "\u202egnp",
  "a".repeat(20_000),
  "ü".normalize("NFD"),
  "--json",
  "--url",
  "http://127.0.0.1:9",
  "file:///etc/passwd",
  "--token",
  "a\r\nx: y",
];
/** They go on for ever when all is well, wait for a person, or make files because they were told to. */
const LEFT_OUT = [
  "init",
  "serve",
  "demo",
  "worker",
  "review",
  "crashkit",
  "migrate",
  "restore",
  "restored",
];

test("hostile arguments: every command ends with a code and a sentence, and writes nothing [I24 T32]", async () => {
  const seed = fuzzSeed();
  const dice = createDice(seed);
  const commands = leavesOf(createProgram(), []);
  const faults: string[] = [];
  const data = path.join(freshFolder(), "none");
  for (let run = 0; run < RUNS; run += 1) {
    const args = ["--data", data, ...dice.pick(commands)];
    for (let more = dice.below(4); more > 0; more -= 1) args.push(dice.pick(WORDS));
    const before = pictureOf(sandbox);
    const ended = await runHere(args);
    // Help and completion are asked for by some of these words, and are a good answer.
    const fault = faultOf(ended, "fail or succeed");
    if (fault !== undefined) faults.push(`${JSON.stringify(args).slice(0, 200)}: ${fault}`);
    if (pictureOf(sandbox) !== before) faults.push(`${args.join(" ").slice(0, 200)}: wrote`);
  }
  settle("arguments", RUNS, RUNS, faults, seed);
}, 600_000);

test("hostile data folders: refused with what to do, and left as they were [I24]", async () => {
  const seed = fuzzSeed();
  const dice = createDice(seed);
  const file = path.join(freshFolder(), "sallyport.db");
  await goodStore(file);
  const good = readFileSync(file);
  const faults: string[] = [];
  const spoilers = [
    ...Object.entries(SPOILED).flatMap((entry) => STORE_COMMANDS.map((args) => ({ entry, args }))),
    ...Object.entries(SPOILED_ACCESS).map((entry) => ({ entry, args: ["decisions", "list"] })),
  ];
  const wanted = RUNS / 4;
  const first = dice.below(spoilers.length);
  let runs = 0;
  for (; runs < wanted; runs += 1) {
    const { entry, args } = spoilers[(first + runs * 7) % spoilers.length] ?? dice.pick(spoilers);
    const [name, spoil] = entry;
    const folder = freshFolder();
    spoil(folder, good, dice);
    const before = pictureOf(folder);
    const fault = faultOf(await runHere(["--data", folder, ...args]), "fail");
    const what = `${name}, ${args.join(" ")}`;
    if (fault !== undefined) faults.push(`${what}: ${fault}`);
    if (pictureOf(folder) !== before) faults.push(`${what}: changed the folder`);
  }
  settle("data folders", runs, wanted, faults, seed);
}, 600_000);

const STORE_COMMANDS = [["audit", "verify"], ["store", "check"], ["store", "migrate"], ["doctor"]];

test("hostile modules for serve and worker: refused with what to do, before anything is made [I24]", async () => {
  const seed = fuzzSeed();
  const faults: string[] = [];
  let runs = 0;
  for (const [name, source] of Object.entries(MODULES)) {
    for (const command of ["serve", "worker"]) {
      const folder = freshFolder();
      const module = path.join(folder, `${runs}.mjs`);
      if (source !== undefined) writeFileSync(module, source);
      const data = path.join(folder, "data");
      const ended = await runHere(["--data", data, command, "--config", module]);
      runs += 1;
      const fault = faultOf(ended, "fail");
      if (fault !== undefined) faults.push(`${command}, ${name}: ${fault}`);
      // What only turns out to be wrong over a store needs one.
      const made = pictureOf(data) !== "nothing" && !OVER_A_STORE.includes(name);
      if (made) faults.push(`${command}, ${name}: made ${data}`);
    }
  }
  settle("modules", runs, Object.keys(MODULES).length, faults, seed);
}, 600_000);

const OVER_A_STORE = [
  "validators that are none",
  "a guard that is none",
  "rules that are none",
  "tools that are none",
];

const MODULES: Readonly<Record<string, string | undefined>> = {
  missing: undefined,
  empty: "",
  "no default": "export const tools = [];",
  "a number": "export default 5;",
  null: "export default null;",
  "a syntax error": "export default {",
  "throws when read": "throw new Error('I do not want to');",
  "throws what is no error": "throw { toString() { throw 1 } };",
  "throws when called": "export default () => { throw new Error('not today') };",
  rejects: "export default async () => { throw undefined };",
  "validators that are none":
    "export default { validators: { tech: {} }, tools: [], policy: { version: '1', rules: [] } };",
  "a guard that is none":
    "const v = { name: 'v', review: async () => ({}) }; export default { validators: { tech: v, business: v }, tools: [], guard: {}, policy: { version: '1', rules: [] } };",
  "rules that are none":
    "const v = { name: 'v', review: async () => ({}) }; export default { validators: { tech: v, business: v }, tools: [], guard: { allows: async () => true }, policy: { version: '1', rules: [{ effect: 'allow' }] } };",
  "tools that are none":
    "const v = { name: 'v', review: async () => ({}) }; export default { validators: { tech: v, business: v }, tools: [{ name: 'x' }], guard: { allows: async () => true }, policy: { version: '1', rules: [] } };",
  "a trap":
    "export default new Proxy({ validators: 1 }, { get() { throw new Error('this is a trap') } });",
};

test("hostile servers: told in one sentence, without an active character, and no prototype is touched [I24 T13]", async () => {
  const seed = fuzzSeed();
  const dice = createDice(seed);
  const server = await startHostileServer();
  const faults: string[] = [];
  // What looks like a broken line is tried again for seconds: once in a while is enough.
  const names = Object.keys(REPLIES).filter(
    (name) => SCALE !== "test" || !TRIED_AGAIN.includes(name),
  );
  const wanted = Math.max(names.length, RUNS);
  let runs = 0;
  for (; runs < wanted; runs += 1) {
    const name = names[runs % names.length] ?? "";
    if (runs >= names.length && TRIED_AGAIN.includes(name)) continue;
    const args = dice.pick(CALLS);
    server.use(name);
    const ended = await runHere(["--url", server.url, "--token", "t", ...args]);
    const fault = faultOf(ended, "fail or succeed");
    if (fault !== undefined) faults.push(`${args.join(" ")}, ${name}: ${fault}`);
    if (({} as Record<string, unknown>)["polluted"] !== undefined) faults.push(`${name} polluted`);
  }
  await server.close();
  settle("servers", runs, wanted, faults, seed);
}, 600_000);

const TRIED_AGAIN = ["no content", "bad gzip", "redirect", "redirect in a circle", "not modified"];

const CALLS = [
  ["decisions", "list"],
  ["decisions", "get", "x"],
  ["interactions", "list"],
  ["interactions", "approve", "x", "--hash", "h"],
  ["tasks", "add", "--subject", "x"],
  ["audit", "head"],
  ["status"],
  ["stop", "why not"],
  ["review"],
];

test("review against hostile servers: nothing acts on the terminal, and no foreign line passes for ours [M2]", async () => {
  const seed = fuzzSeed();
  const server = await startHostileServer();
  const faults: string[] = [];
  const names = Object.keys(REPLIES).filter((name) => !TRIED_AGAIN.includes(name));
  for (const name of names) {
    server.use(name);
    const ended = await runHere(["--url", server.url, "--token", "t", "review"]);
    const fault = faultOf(ended, "fail or succeed");
    if (fault !== undefined) faults.push(`${name}: ${fault}`);
    const forged = ended.out.split("\n").filter((line) => line.startsWith("  FORGED"));
    if (forged.length > 0) faults.push(`${name}: ${forged[0]}`);
  }
  server.use("a hostile inbox");
  const { out } = await runHere(["--url", server.url, "--token", "t", "review"]);
  await server.close();
  // It was really drawn: every question, with its forged lines behind the mark.
  expect(out).toContain("[3 of 3]");
  expect(out).toContain("  |   FORGED");
  settle("review and servers", names.length, names.length, faults, seed);
}, 600_000);

test("as real processes: no trace, no signal, nothing keeps them alive [I24]", async () => {
  const seed = fuzzSeed();
  const dice = createDice(seed);
  const faults: string[] = [];
  const file = path.join(freshFolder(), "sallyport.db");
  await goodStore(file);
  const good = readFileSync(file);
  for (let run = 0; run < APART; run += 1) {
    const folder = freshFolder();
    const [name, spoil] = dice.pick(Object.entries(SPOILED));
    spoil(folder, good, dice);
    const args = dice.pick([...STORE_COMMANDS, ["serve"], ["worker"], ["review"], ["demo"]]);
    const fault = faultOf(await runApart(["--data", folder, ...args], sandbox), "fail");
    if (fault !== undefined) faults.push(`${name}, ${args.join(" ")}: ${fault}`);
  }
  settle("processes", APART, APART, faults, seed);
}, 600_000);

/** Every way to say a command, from the program itself. */
function leavesOf(command: Command, way: readonly string[]): string[][] {
  const own = command.commands.filter((one) => !LEFT_OUT.includes(one.name()));
  if (command.commands.length === 0) return [[...way]];
  return [[...way], ...own.flatMap((one) => leavesOf(one, [...way, one.name()]))];
}
