import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { CallAnswer } from "../../src/model/operation.ts";
import { createStore } from "../../src/store/store.ts";
import { fileTools } from "../../src/tools/builtin/files.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { createRegistry } from "../../src/tools/registry.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { createResultProcessor } from "../../src/tools/tool-call.ts";
import { sha256Hex } from "../../src/util/hash.ts";
import type { JsonValue } from "../../src/util/json.ts";
import {
  AGENT,
  approve,
  collected,
  decisionIdOf,
  type GateWorld,
  openGate,
  request,
  rules,
  TENANT,
} from "../support/port-world.ts";

const allow = (tool: string) => rules({ id: "ok", effect: "allow", tool, reason: "a test" });

async function trailOf({ gate }: Pick<GateWorld, "gate">, session = "s-1") {
  const entries = await gate.audit.read({ after: 0, limit: 1_000 });
  return entries
    .filter((entry) => entry.session === session)
    .map(({ type, data }) => ({ type, data: JSON.parse(data ?? "{}") }));
}

test("a tool that configuration brings is dispatched like a built-in one, also one that comes later [S2-07]", async () => {
  const folder = await realpath(await mkdtemp(path.join(tmpdir(), "sallyport-tools-")));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(path.join(folder, "a.txt"), "hello");
  const custom = (name: string): Tool =>
    defineTool({
      name,
      description: "Reads, in its own way.",
      input: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
      safety: { effect: "read", concurrencySafe: true },
      permissionClass: "file",
      resources: ({ input }) => [{ kind: "file", path: String(input["path"]), access: "read" }],
      execute: () => "hello from elsewhere",
    });
  const registry = createRegistry();
  for (const tool of [...fileTools(), custom("own.read")]) registry.register(tool);
  const fileRoots = [{ path: folder, access: "read" }] as const;
  const world = openGate({ tools: registry, fileRoots });
  registry.register(custom("late.read"));
  const trails = [];
  for (const name of ["files.read", "own.read", "late.read"]) {
    const session = world.gate.sessions.open({ id: name, agent: AGENT, workingDirectory: folder });
    const answers: CallAnswer["answer"][] = [];
    for (const given of [
      { path: "a.txt" },
      { path: "../other" },
      { path: 7 },
      { path: "missing/../a.txt" },
    ]) {
      answers.push((await session.call(request(name, given))).answer);
    }
    const types = (await trailOf(world, name)).map(({ type }) => type);
    trails.push({ answers, types });
  }
  expect(trails[0]?.answers).toEqual(["done", "pending", "failed", "denied"]);
  expect(trails[1]).toEqual(trails[0]);
  expect(trails[2]).toEqual(trails[0]);
});

const ESTIMATES: readonly JsonValue[] = [
  // biome-ignore format: a table
  ...[79.999, 0, -0, -1, 1, 100.0001, 101, 1e308, -80, 0.8, 0.99, Number.MIN_VALUE, 2 ** 53],
  // biome-ignore format: a table
  ...["80", "100", "1", "high", "", " 90", "90%", "NaN", "Infinity", "0x64", "1e2", "true", "９０"],
  ...[true, false, null, [], [90], [[90]], {}, { value: 90 }, { valueOf: 90 }, { min: 0 }],
];
/** What only a text can say. */
// biome-ignore format: a table
const WRITTEN: readonly string[] = [
  "1e309", "-1e309", "NaN", "Infinity", "-Infinity", "090", "+90", "90.", ".9e2", "0x5a", "9_0", "90n", "undefined", "'90'",
];

test("no odd estimate relaxes the gate, on any way in [T28 S2-32]", async () => {
  const { gate, effects } = openGate({ policy: allow("world.keen") });
  const session = gate.sessions.open({ agent: AGENT });
  const fields = { key: "a", value: 1 };
  const inputs = [
    fields,
    ...ESTIMATES.map((estimate) => ({ ...fields, _confidence: estimate })),
    ...WRITTEN.map((estimate) => `{"key":"a","value":1,"_confidence":${estimate}}`),
    // Elsewhere, twice, and under names that only look like it.
    { ...fields, _meta: { _confidence: 100 } },
    { ...fields, confidence: 100 },
    { ...fields, _Confidence: 100 },
    { ...fields, "_confidence ": 100 },
    '{"key":"a","value":1,"_confidence":10,"_confidence":100}',
    '{"key":"a","value":1,"_confidence":100,"_confidence":10}',
    '[{"key":"a","value":1,"_confidence":100}]',
  ];
  expect(inputs.length).toBeGreaterThanOrEqual(50);
  for (const input of inputs) {
    const one = request("world.keen", input);
    const [batched] = await collected(session.callAll([one]));
    const answers = [await session.call(one), batched?.answer, await session.stage([one])];
    for (const answer of answers) {
      expect(answer?.answer, JSON.stringify(input)).toBe("denied");
      expect(answer?.text).toContain("Nothing was executed");
    }
  }
  expect(effects).toEqual([]);
  // It is the estimate that kept them out: a plain number at or above the minimum lets the same call in.
  for (const _confidence of [80, 80.5, 100]) {
    const answer = await session.call(request("world.keen", { ...fields, _confidence }));
    expect(answer.answer).toBe("done");
  }
  expect(effects).toHaveLength(3);
});

test("the gate comes before execute; the model gets an error of the tool and can reconsider [S2-32]", async () => {
  const world = openGate({ policy: allow("world.keen") });
  const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
  const keen = (callId: string, _confidence: number) =>
    request("world.keen", { key: callId, value: 1, _confidence }, callId);
  const batch = [keen("first", 90), keen("low", 40), keen("last", 95)];
  const results = await collected(session.callAll(batch));
  expect(results.map(({ callId, answer }) => [callId, answer.answer])).toEqual([
    ["first", "done"],
    ["low", "denied"],
    ["last", "done"],
  ]);
  expect(results[1]?.answer.text).toMatch(/confidence of 40 is below the required minimum of 80/);
  expect(world.effects).toHaveLength(2);
  const denied = (await trailOf(world)).filter(({ type }) => type === "call.denied");
  expect(denied).toMatchObject([{ data: { findings: [{ policy: "confidence" }] } }]);
  expect((await session.call(keen("low", 85))).answer).toBe("done");
});

test("neither the tool nor anything that is shown, stored or hashed for it sees the reserved key [S2-33]", async () => {
  for (const key of ["_confidence", "_sure"]) {
    const seen: unknown[] = [];
    const open = defineTool({
      name: "open.do",
      description: "Takes anything.",
      input: { type: "object", additionalProperties: true },
      safety: { effect: "external", confidenceMin: 50 },
      dryRun: ({ input }) => JSON.stringify(input),
      execute: ({ input }) => void seen.push(input),
    });
    const over = { tools: [open], ...(key === "_confidence" ? {} : { confidenceKey: key }) };
    const world = openGate(over);
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    for (const input of [{ a: 1, [key]: 90 }, `{"a": 1, "${key}": 90}`]) {
      const id = decisionIdOf(await session.call(request("open.do", input)));
      const { diff } = await world.gate.decisions.get(id);
      expect(Buffer.from(diff.raw).toString()).not.toContain(key);
      expect(JSON.stringify(await world.gate.interactions.shown(id))).not.toContain(key);
      await approve(world.gate, id);
    }
    expect(seen).toEqual([{ a: 1 }, { a: 1 }]);
    const operations = await world.gate.operations.listBySession("s-1");
    expect(operations.map(({ input }) => input)).toEqual(['{"a":1}', '{"a":1}']);
    expect(JSON.stringify(open.inputSchema)).not.toContain(key);
  }
});

const FLAGS = [true, false];

test("the concurrency-safe flag alone decides what runs in parallel [S2-36]", async () => {
  for (const concurrencySafe of FLAGS) {
    for (const readOnly of FLAGS) {
      for (const destructive of FLAGS) {
        for (const effect of ["read", "write", "external", ""] as const) {
          let running = 0;
          let most = 0;
          const plain = defineTool({
            name: "flag.do",
            description: "Takes its time.",
            input: { type: "object" },
            async execute() {
              running += 1;
              most = Math.max(most, running);
              await new Promise((resolve) => setTimeout(resolve, 2));
              running -= 1;
              return "done";
            },
          });
          const metadata = { concurrencySafe, readOnly, destructive, effect };
          const { gate } = openGate({ tools: [{ ...plain, metadata }], policy: allow("flag.do") });
          const calls = ["1", "2", "3"].map((callId) => request("flag.do", {}, callId));
          const session = gate.sessions.open({ agent: AGENT });
          const results = await collected(session.callAll(calls));
          expect(results.map(({ answer }) => answer.answer)).toEqual(["done", "done", "done"]);
          expect(most, JSON.stringify(metadata)).toBe(concurrencySafe ? 3 : 1);
        }
      }
    }
  }
});

/** A tool with everything a result can have, and a processor that stores what is long. */
function rich() {
  const data = { rows: [1, 2], self: () => "not serialisable" };
  const make = (name: string, isError: boolean) =>
    defineTool({
      name,
      description: "Says much.",
      input: { type: "object", properties: { length: { type: "integer" } }, required: ["length"] },
      safety: { effect: "external", reversible: true },
      execute: ({ input }) => ({ text: "x".repeat(Number(input["length"])), isError, data }),
      undo: () => ({ tool: "rich.undo", input: { id: 7 }, description: "puts it back" }),
    });
  const stored: string[] = [];
  const save = async (_: unknown, text: string) => {
    stored.push(text);
    return { id: "r1", path: "/results/r1", bytes: text.length };
  };
  const processor = createResultProcessor({
    store: { save: save as never },
    maxCharacters: 100,
    headCharacters: 10,
  });
  const tools = [make("rich.say", false), make("rich.fail", true)];
  const world = openGate({ tools, processor, policy: allow("rich.*") });
  const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
  return { ...world, data, stored, session };
}

test("text, truncation, stored path, undo and data reach the answer, the operation and the trail [S2-95]", async () => {
  for (const length of [5, 500]) {
    for (const way of ["call", "callAll", "stage"] as const) {
      const world = rich();
      const { session, gate, data } = world;
      const one = request("rich.say", { length });
      const [answer] =
        way === "call"
          ? [await session.call(one)]
          : way === "callAll"
            ? (await collected(session.callAll([one]))).map((result) => result.answer)
            : await approve(gate, decisionIdOf(await session.stage([one])));
      const truncated = length > 100;
      const storedPath = truncated ? "/results/r1" : "";
      const undo = { tool: "rich.undo", input: { id: 7 }, description: "puts it back" };
      expect(answer, way).toMatchObject({ answer: "done", truncated, storedPath, undo });
      // By reference: a value that cannot be serialised still reaches the caller.
      expect(answer?.answer === "done" && answer.data).toBe(data);
      expect(answer?.text.includes("x".repeat(truncated ? 10 : 5))).toBe(true);
      expect(answer?.text.includes("x".repeat(11))).toBe(false);
      const [operation] = await gate.operations.listBySession("s-1");
      expect(operation).toMatchObject({ status: "success", truncated, storedPath, undo });
      expect(operation?.output).toBe(answer?.text);
      const told = (await trailOf(world)).find(({ type }) => type === "operation.succeeded");
      const proof = await createStore(world.tap.engine, { redact: (_, data) => data })
        .tenant(TENANT)
        .contentProof();
      const about = { field: "output", subject: operation?.id ?? "" };
      const output_hmac = proof?.(about, sha256Hex(answer?.text ?? ""));
      expect(told?.data).toMatchObject({ truncated, undo: "tool", output_hmac });
      expect(world.stored).toEqual(truncated ? ["x".repeat(length)] : []);
    }
  }
});

test("the error flag reaches the answer, the operation and the trail, with text and data [S2-95]", async () => {
  const world = rich();
  const answer = await world.session.call(request("rich.fail", { length: 5 }));
  expect(answer).toMatchObject({ answer: "failed", text: "xxxxx" });
  expect(answer.answer === "failed" && answer.data).toBe(world.data);
  const [operation] = await world.gate.operations.listBySession("s-1");
  expect(operation).toMatchObject({ status: "failed", error: "xxxxx", undo: undefined });
  const told = (await trailOf(world)).find(({ type }) => type === "operation.failed");
  expect(told?.data).toMatchObject({ error: "xxxxx" });
});

test("a long error is stored and said to be so, like any other long output [S2-95]", async () => {
  const world = rich();
  const answer = await world.session.call(request("rich.fail", { length: 500 }));
  expect(answer.answer).toBe("failed");
  expect(world.stored).toHaveLength(1);
  const [operation] = await world.gate.operations.listBySession("s-1");
  expect(operation).toMatchObject({ truncated: true, storedPath: "/results/r1" });
});
