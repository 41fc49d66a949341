import { expect, test, vi } from "vitest";
import {
  batch,
  done,
  held,
  isConcurrencySafe,
  resultsOf,
  settle,
} from "../../tests/support/orchestrate-held.ts";
import type { CallAnswer, CallRequest } from "../model/operation.ts";
import { defineTool } from "../tools/define-tool.ts";
import { createRegistry } from "../tools/registry.ts";
import { type OrchestrateOptions, orchestrate } from "./orchestrate.ts";

test("safe calls run in parallel and the others one at a time [S2-82]", async () => {
  const safe = held("rrrr");
  await settle();
  expect(safe.ids()).toEqual(["r0", "r1", "r2", "r3"]);

  const unsafe = held("www");
  await settle();
  expect(unsafe.ids()).toEqual(["w0"]);
  await unsafe.finish("w0");
  expect(unsafe.ids()).toEqual(["w0", "w1"]);
  await unsafe.finish("w1");
  await unsafe.finish("w2");
  await unsafe.reading;
  expect(unsafe.results.map(({ callId }) => callId)).toEqual(["w0", "w1", "w2"]);
});

test("of tools in a registry, only those declared safe run in parallel [S2-82]", async () => {
  const registry = createRegistry();
  const sheet = { description: "d", input: { type: "object" }, execute: () => "x" } as const;
  registry.register({
    ...defineTool({ ...sheet, name: "r" }),
    metadata: { concurrencySafe: true, aliases: ["s"] },
  });
  registry.register({ ...defineTool({ ...sheet, name: "w" }), metadata: { readOnly: true } });
  registry.register(defineTool({ ...sheet, name: "x" }));
  const startedOf = async (letters: string) => {
    const { ids } = held(letters, {
      isConcurrencySafe: (tool) => registry.metadataFor(tool).metadata.concurrencySafe,
    });
    await settle();
    return ids();
  };
  expect(await startedOf("rrs")).toHaveLength(3);
  expect(await startedOf("ww"), "readOnly does not decide").toHaveLength(1);
  expect(await startedOf("xx"), "undeclared").toHaveLength(1);
  expect(await startedOf("uu"), "unknown").toHaveLength(1);
});

test("only neighbouring safe calls form a group; an unsafe one waits and holds up [S2-83]", async () => {
  const { ids, finish, reading, results } = held("rrwrrw");
  await settle();
  expect(ids()).toEqual(["r0", "r1"]);
  await finish("r1");
  expect(ids(), "w2 waits for r0 as well").toHaveLength(2);
  await finish("r0");
  expect(ids()).toEqual(["r0", "r1", "w2"]);
  await finish("w2");
  expect(ids()).toEqual(["r0", "r1", "w2", "r3", "r4"]);
  await finish("r3");
  await finish("r4");
  await finish("w5");
  await reading;
  expect(results.map(({ index }) => index)).toEqual([1, 0, 2, 3, 4, 5]);
});

test("a tool about which the question fails, or is not answered with true, runs alone [S2-83]", async () => {
  const throwing = () => {
    throw new Error("no such tool");
  };
  for (const answer of [throwing, () => 1, () => "yes", () => undefined, async () => true]) {
    const { ids } = held("rr", { isConcurrencySafe: answer as unknown as () => boolean });
    await settle();
    expect(ids()).toEqual(["r0"]);
  }
});

test("never more than the maximum at once, and always as many as allowed [S2-84]", async () => {
  const { ids, finish } = held("rrrrr", { maxAtOnce: 2 });
  await settle();
  expect(ids()).toEqual(["r0", "r1"]);
  await finish("r1");
  expect(ids()).toEqual(["r0", "r1", "r2"]);
  await finish("r0");
  await finish("r2");
  expect(ids()).toHaveLength(5);
});

test.each([
  [undefined, 10],
  [0, 10],
  [-1, 10],
  [-Infinity, 10],
  [NaN, 10],
  [1, 1],
  [0.5, 1],
  [2.9, 2],
  [11, 11],
  [Infinity, 25],
])("a maximum of %s means %i [S2-84 S2-85]", async (maxAtOnce, expected) => {
  const { ids } = held("r".repeat(25), maxAtOnce === undefined ? {} : { maxAtOnce });
  await settle();
  expect(ids()).toHaveLength(expected);
});

test("results come as they finish, each with its call id, tool name and place [S2-86]", async () => {
  const { finish, results } = held("rrr");
  await settle();
  await finish("r2");
  expect(results).toEqual([{ callId: "r2", tool: "r", index: 2, answer: done("r2") }]);
  await finish("r0");
  expect(results.map(({ callId }) => callId)).toEqual(["r2", "r0"]);
});

test("a slow reader holds up nothing and misses nothing [S2-86]", async () => {
  const ran: string[] = [];
  const iterator = orchestrate(batch("rwrw"), {
    run: async ({ callId }) => {
      ran.push(callId);
      return done(callId);
    },
    isConcurrencySafe,
  });
  const first = await iterator.next();
  await settle();
  expect(first.value?.callId).toBe("r0");
  expect(ran).toEqual(["r0", "w1", "r2", "w3"]);
  const rest: string[] = [];
  for await (const { callId } of iterator) rest.push(callId);
  expect(rest).toEqual(["w1", "r2", "w3"]);
});

test("nothing runs before somebody reads, and nothing runs twice [S2-86]", async () => {
  const run = vi.fn(async ({ callId }: CallRequest) => done(callId));
  const iterator = orchestrate(batch("rw"), { run, isConcurrencySafe });
  await settle();
  expect(run).not.toHaveBeenCalled();
  const several = await Promise.all([iterator.next(), iterator.next(), iterator.next()]);
  expect(several.map(({ value }) => value?.callId)).toEqual(["r0", "w1", undefined]);
  for await (const _ of iterator) expect.unreachable();
  expect(run).toHaveBeenCalledTimes(2);
});

test("no calls, no results [S2-86]", async () => {
  expect(await resultsOf([], { run: async () => done(""), isConcurrencySafe })).toEqual([]);
});

const unprintable = {
  toString() {
    throw new Error("no text either");
  },
};
const hostile = new Proxy({}, { get: () => expect.fail("looked at") });

test.each<[string, () => unknown]>([
  ["an error", () => Promise.reject(new Error("boom"))],
  ["a rejection with a text", () => Promise.reject("boom")],
  ["a rejection with nothing", () => Promise.reject(undefined)],
  ["a rejection that cannot be printed", () => Promise.reject(unprintable)],
  [
    "a synchronous throw",
    () => {
      throw new Error("boom");
    },
  ],
  [
    "a synchronous throw of null",
    () => {
      throw null;
    },
  ],
  ["nothing", () => undefined],
  ["null", () => Promise.resolve(null)],
  ["a text", () => Promise.resolve("done")],
  ["an answer of no known kind", () => Promise.resolve({ answer: "toString", text: "x" })],
  ["an answer without text", () => Promise.resolve({ answer: "done" })],
  ["an answer that throws when looked at", () => hostile],
])("%s becomes one failed result and the neighbours go on [S2-87 S2-88]", async (_, misbehave) => {
  const results = await resultsOf(batch("rXrwXr"), {
    run: (({ tool, callId }: CallRequest) =>
      tool === "X" ? misbehave() : Promise.resolve(done(callId))) as OrchestrateOptions["run"],
    isConcurrencySafe: (tool) => tool !== "w",
  });
  const inOrder = results.toSorted((a, b) => a.index - b.index);
  expect(inOrder.map(({ callId }) => callId)).toEqual(["r0", "X1", "r2", "w3", "X4", "r5"]);
  for (const { tool, answer } of inOrder) {
    expect(answer.answer).toBe(tool === "X" ? "failed" : "done");
    if (tool === "X") expect(answer.text).toMatch(/^The call .*\. It may have taken effect/);
  }
});

test("what is no answer is called so [S2-87]", async () => {
  for (const nothing of [undefined, null, 7, "done", {}, []]) {
    const run = async () => nothing as unknown as CallAnswer;
    const [result] = await resultsOf(batch("w"), { run, isConcurrencySafe });
    expect(result?.answer.text).toMatch(/^The call ended with something that is no answer\./);
  }
});

test("what a call answers is passed on as it is: pending, denied, failed, unknown [S2-87]", async () => {
  const answers: readonly CallAnswer[] = [
    { answer: "pending", text: "p", decisionId: "dec_1", interactionId: "dec_1" },
    { answer: "denied", text: "d", findings: [] },
    { answer: "failed", text: "There is no tool X." },
    { answer: "unknown", text: "u", operationId: "op" },
  ];
  const calls = batch("rrrr");
  const results = await resultsOf(calls, {
    run: async (call) => answers[calls.indexOf(call)]!,
    isConcurrencySafe,
  });
  for (const { index, answer } of results) expect(answer).toBe(answers[index]);
  expect(results).toHaveLength(4);
});

test("calls with the same id get a result each, told apart by their place [S2-87]", async () => {
  const calls = ["a", "b", "a"].map((text) => ({ callId: "same", tool: "r", input: text }));
  const results = await resultsOf(calls, {
    run: async ({ input }) => done(String(input)),
    isConcurrencySafe,
  });
  expect(results.map(({ index, answer }) => [index, answer.text])).toEqual([
    [0, "a"],
    [1, "b"],
    [2, "a"],
  ]);
});

test("a list that its owner changes meanwhile keeps its places [S2-87]", async () => {
  const calls = batch("ww");
  const results = await resultsOf(calls, {
    run: async ({ callId }) => {
      calls.length = 0;
      return done(callId);
    },
    isConcurrencySafe,
  });
  expect(results.map(({ callId }) => callId)).toEqual(["w0", "w1"]);
});

test("a place without a call is refused before anything runs [S2-87]", () => {
  const run = vi.fn(async () => done(""));
  const calls = [undefined, ...batch("r")] as CallRequest[];
  expect(() => orchestrate(calls, { run, isConcurrencySafe })).toThrow("a place without a call");
});

test("a failing unsafe call does not stop what waits for it [S2-88]", async () => {
  const { started, finish, results, reading } = held("wrw");
  await settle();
  started[0]!.fail(new Error("disk full"));
  await settle();
  await finish("r1");
  await finish("w2");
  await reading;
  expect(results.map(({ answer }) => answer.answer)).toEqual(["failed", "done", "done"]);
  expect(results[0]!.answer.text).toContain("disk full");
});

test("structured data is handed through by reference: not copied, not looked at [S2-93]", async () => {
  const data = new Proxy(
    {},
    { get: () => expect.fail("looked at"), ownKeys: () => expect.fail("listed") },
  );
  const cases: readonly unknown[] = [data, null, undefined, 0, new Map([["a", 1]]), () => 1];
  const answers = cases.map((one, index) => done(String(index), one));
  const calls = batch("r".repeat(cases.length));
  const results = await resultsOf(calls, {
    run: async (call) => answers[calls.indexOf(call)]!,
    isConcurrencySafe,
  });
  expect(results.length).toBe(cases.length);
  for (const { index, answer } of results) {
    expect(answer === answers[index]).toBe(true);
    expect("data" in answer && Object.is(answer.data, cases[index])).toBe(true);
  }
});
