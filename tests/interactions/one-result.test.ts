// Pains 5: whenever a process goes away, the agent that comes back finds exactly one result per call, and nothing ran twice.

import { expect, test } from "vitest";
import type { Gate } from "../../src/gate/create-gate.ts";
import { askUserTool } from "../../src/gate/inbox.ts";
import type { CallAnswer, CallRequest } from "../../src/model/operation.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { AGENT, openGate, PERSON, request, rules } from "../support/port-world.ts";
import { FULL, type InboxWorld, onStores } from "./inbox-world.ts";

class Gone extends Error {}

/** A ledger that takes each idempotency key once, so that a repeated call after a crash is seen to be harmless. */
function ledger() {
  const lines: string[] = [];
  const seen = new Set<string>();
  const tool = (name: string) =>
    defineTool({
      name,
      description: "Writes a line.",
      input: { type: "object", properties: { line: { type: "string" } }, required: ["line"] },
      safety: { effect: "external" },
      idempotency: "keyed",
      dryRun: ({ input }) => `would write ${String(input["line"])}`,
      execute({ input, idempotencyKey }) {
        if (!seen.has(idempotencyKey)) lines.push(String(input["line"]));
        seen.add(idempotencyKey);
        return `wrote ${String(input["line"])}`;
      },
    });
  const tools = [tool("ledger.ask"), tool("ledger.free"), askUserTool()];
  const policy = rules({ id: "f", effect: "allow", tool: "ledger.free", reason: "a test" });
  return { lines, over: { tools, policy } };
}

const call = (key: string, tool: string, line = key): CallRequest => ({
  ...request(tool, { line }, key),
  key,
});
const ASK: CallRequest = { ...request("ask_user", { question: "How many?" }, "q"), key: "q" };
const CALLS = [call("1", "ledger.ask"), call("2", "ledger.free"), call("3", "ledger.ask"), ASK];
const BUNDLE = [call("4", "ledger.ask"), call("5", "ledger.ask")];
const KEYS = ["1", "2", "3", "q", "4", "5"];

/** One turn of the agent, which does not know what it has asked before, and one of a person. */
async function turn(gate: Gate, note: (key: string, answer: CallAnswer) => void): Promise<void> {
  await gate.recover();
  const session = gate.sessions.open({ id: "s-1", agent: AGENT });
  for (const one of CALLS) await session.call(one);
  await session.stage(BUNDLE);
  for (const { id, hash, type } of await gate.interactions.list()) {
    if (type === "ask_user")
      await gate.interactions.answer(id, { hash, by: PERSON, answer: "seven" });
    else await gate.interactions.approve(id, { hash, by: PERSON });
  }
  for (const key of KEYS) {
    const answer = await session.resultOf(key);
    if (answer !== undefined) note(key, answer);
  }
}

/** The whole run, with a process that goes away right before or right after each of these writes. */
async function run(world: InboxWorld, dies: (write: number) => "before" | "after" | undefined) {
  const { tap, clock } = world;
  const results = new Map<string, string>();
  let writes = 0;
  tap.before = () => {
    writes += 1;
    if (dies(writes) === "before") throw new Gone();
  };
  tap.after = () => {
    if (dies(writes) === "after") throw new Gone();
  };
  const note = (key: string, { answer, text }: CallAnswer) => {
    if (answer === "pending" || answer === "unknown") return;
    const result = `${answer}: ${text}`;
    // An answer that was given once is given for ever.
    expect(results.get(key) ?? result).toBe(result);
    results.set(key, result);
  };
  for (let lives = 0; results.size < KEYS.length; lives += 1) {
    if (lives > 60) throw new Error(`not done: ${[...results.keys()].join(" ")}`);
    await turn(world.again(), note).catch((error: unknown) => {
      if (!(error instanceof Gone)) throw error;
    });
    clock.advance(31_000);
  }
  tap.before = () => {};
  tap.after = () => {};
  const told = KEYS.map((key) => `${key} ${results.get(key)}`);
  return { told, writes };
}

const EXPECTED = KEYS.map((key) => (key === "q" ? "q done: seven" : `${key} done: wrote ${key}`));

onStores("a run that is cut off", (open) => {
  test("a restart between every two events: one result per call, every effect once [P5 R16 R17]", async () => {
    const quiet = ledger();
    const { writes } = await run(await open(quiet.over), () => undefined);
    expect(writes).toBeGreaterThan(12);
    // For the next process, before one write and after the previous one are the same; for a caller with an answer they are not.
    for (let n = 1; n <= writes; n += 1) {
      const moments = FULL || n % 3 === 0 ? (["before", "after"] as const) : (["after"] as const);
      for (const moment of moments) {
        const { lines, over } = ledger();
        const world = await open(over);
        const { told } = await run(world, (write) => (write === n ? moment : undefined));
        expect(told, `${moment} write ${n}`).toEqual(EXPECTED);
        expect(lines.toSorted(), `${moment} write ${n}`).toEqual(["1", "2", "3", "4", "5"]);
        expect(await world.gate.interactions.list(), `${moment} write ${n}`).toEqual([]);
      }
    }
  });

  test("a process that never lives longer than a few writes still gets everything done once [P5 R17]", async () => {
    for (const step of FULL ? [2, 3, 4, 5, 6, 7, 8] : [2, 3, 5]) {
      const { lines, over } = ledger();
      const { told } = await run(await open(over), (n) => (n % step === 0 ? "after" : undefined));
      expect(told, `every ${step} writes`).toEqual(EXPECTED);
      expect(lines.toSorted(), `every ${step} writes`).toEqual(["1", "2", "3", "4", "5"]);
    }
  });
});

test("nothing before the gate has effects, and what comes after the pause repeats nothing before it [R16]", async () => {
  const counts = { tech: 0, business: 0, dryRun: 0, execute: 0 };
  const severity = "" as const;
  const verdict = { approved: true, score: 1, severity, reason: "fits", policyVersion: "1" };
  const validator = (name: "tech" | "business") => ({
    name,
    review() {
      counts[name] += 1;
      return { ...verdict, validator: name } as const;
    },
  });
  const tool = defineTool({
    name: "shop.buy",
    description: "Buys.",
    input: { type: "object" },
    safety: { effect: "external" },
    dryRun() {
      counts.dryRun += 1;
      return "would buy";
    },
    execute() {
      counts.execute += 1;
      return "bought";
    },
  });
  const validators = { tech: validator("tech"), business: validator("business") };
  const { gate, again } = openGate({ tools: [tool], validators });
  const keyed = { ...request("shop.buy", {}), key: "k" };
  const asked = await gate.sessions.open({ id: "s-1", agent: AGENT }).call(keyed);
  expect(counts).toEqual({ tech: 1, business: 1, dryRun: 1, execute: 0 });
  // Ten restarts with an agent that asks again each time.
  for (let i = 0; i < 10; i += 1) {
    const later = again();
    expect(await later.recover()).toMatchObject({ operations: [], decisions: [], proposals: [] });
    expect(await later.sessions.open({ id: "s-1", agent: AGENT }).call(keyed)).toEqual(asked);
  }
  expect(counts).toEqual({ tech: 1, business: 1, dryRun: 1, execute: 0 });
  const [{ id, hash } = { id: "", hash: "" }] = await gate.interactions.list();
  await again().interactions.approve(id, { hash, by: PERSON });
  // Read once more before it runs, without an effect; reviewed and executed once.
  expect(counts).toEqual({ tech: 1, business: 1, dryRun: 2, execute: 1 });
  for (let i = 0; i < 10; i += 1) {
    const last = await again().sessions.open({ id: "s-1", agent: AGENT }).call(keyed);
    expect(last).toMatchObject({ answer: "done", text: "bought" });
  }
  expect(counts).toEqual({ tech: 1, business: 1, dryRun: 2, execute: 1 });
});
