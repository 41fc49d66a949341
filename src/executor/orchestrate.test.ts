import { getEventListeners } from "node:events";
import { expect, test, vi } from "vitest";
import type { CallAnswer, CallRequest } from "../model/call.ts";
import { defineTool } from "../tools/define-tool.ts";
import { createRegistry } from "../tools/registry.ts";
import { sampleCall } from "../tools/sample-call.ts";
import { manualClock } from "../util/clock.ts";
import { manualTimers } from "../util/manual-timers.ts";
import { type CallHooks, type CallResult, type OrchestrateOptions, orchestrate } from "./orchestrate.ts";

/** A letter per call: `r` is safe, anything else is not. Its place in the batch is its id. */
const batch = (letters: string): CallRequest[] =>
  [...letters].map((tool, index) => ({ callId: `${tool}${index}`, tool, input: {} }));
const isConcurrencySafe = (tool: string) => tool === "r";

const done = (text: string, data?: unknown): CallAnswer => ({
  answer: "done",
  text,
  operationId: `op-${text}`,
  truncated: false,
  storedPath: "",
  data,
});

/** One turn of the event loop: everything that can go on has gone on. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

interface Started extends CallHooks {
  readonly callId: string;
  answer(answer: CallAnswer): void;
  fail(error: unknown): void;
}

/** A batch whose calls end when the test says so, read to the end in the background. */
function held(letters: string, change: Partial<OrchestrateOptions> = {}) {
  const started: Started[] = [];
  const results: CallResult[] = [];
  const iterator = orchestrate(batch(letters), {
    run: ({ callId }, hooks) => {
      const { promise, resolve, reject } = Promise.withResolvers<CallAnswer>();
      started.push({ ...hooks, callId, answer: resolve, fail: reject });
      return promise;
    },
    isConcurrencySafe,
    ...change,
  });
  const reading = (async () => {
    for await (const result of iterator) results.push(result);
  })();
  return {
    started,
    results,
    reading,
    ids: () => started.map(({ callId }) => callId),
    async finish(callId: string, answer: CallAnswer = done(callId)) {
      started.find((call) => call.callId === callId)!.answer(answer);
      await settle();
    },
  };
}

async function all(calls: readonly CallRequest[], options: OrchestrateOptions) {
  const results: CallResult[] = [];
  for await (const result of orchestrate(calls, options)) results.push(result);
  return results;
}

test("S2-82 safe calls run in parallel and the others one at a time", async () => {
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

test("S2-82 what the registry knows decides: declared safe, undeclared, unknown", async () => {
  const registry = createRegistry();
  const sheet = { description: "d", inputSchema: { type: "object" }, execute: async () => "x" };
  const safety = { effect: "read", reversible: true } as const;
  registry.register(defineTool({ ...sheet, name: "read", safety: { ...safety, concurrencySafe: true } } as never));
  const safe: string[] = [];
  const waiting = held("r", {
    isConcurrencySafe: (tool) => {
      safe.push(tool);
      return registry.metadataFor(tool).metadata.concurrencySafe;
    },
  });
  await settle();
  expect(waiting.ids()).toEqual(["r0"]);
});

test("S2-83 only neighbouring safe calls form a group; an unsafe one waits and holds up", async () => {
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

test("S2-83 a tool about which the question fails, or is not answered with true, runs alone", async () => {
  const throwing = () => {
    throw new Error("no such tool");
  };
  for (const answer of [throwing, () => 1, () => "yes", () => undefined, async () => true]) {
    const { ids } = held("rr", { isConcurrencySafe: answer as () => boolean });
    await settle();
    expect(ids()).toEqual(["r0"]);
  }
});

test("S2-84 never more than the maximum at once, and always as many as allowed", async () => {
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
])("S2-84 S2-85 a maximum of %s means %i", async (maxAtOnce, expected) => {
  const { ids } = held("r".repeat(25), maxAtOnce === undefined ? {} : { maxAtOnce });
  await settle();
  expect(ids()).toHaveLength(expected);
});

test("S2-86 results come as they finish, each with its call id, tool name and place", async () => {
  const { finish, results } = held("rrr");
  await settle();
  await finish("r2");
  expect(results).toEqual([{ callId: "r2", tool: "r", index: 2, answer: done("r2") }]);
  await finish("r0");
  expect(results.map(({ callId }) => callId)).toEqual(["r2", "r0"]);
});

test("S2-86 a slow reader holds up nothing and misses nothing", async () => {
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

test("S2-86 nothing runs before somebody reads, and nothing runs twice", async () => {
  const run = vi.fn(async ({ callId }: CallRequest) => done(callId));
  const iterator = orchestrate(batch("rw"), { run, isConcurrencySafe });
  await settle();
  expect(run).not.toHaveBeenCalled();
  const several = await Promise.all([iterator.next(), iterator.next(), iterator.next()]);
  expect(several.map(({ value }) => value?.callId)).toEqual(["r0", "w1", undefined]);
  for await (const _ of iterator) expect.unreachable();
  expect(run).toHaveBeenCalledTimes(2);
});

test("S2-86 no calls, no results", async () => {
  expect(await all([], { run: async () => done(""), isConcurrencySafe })).toEqual([]);
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
])("S2-87 S2-88 %s becomes one failed result and the neighbours go on", async (_, misbehave) => {
  const results = await all(batch("rXrwXr"), {
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

test("S2-87 what a call answers is passed on as it is: pending, denied, failed, unknown", async () => {
  const answers: readonly CallAnswer[] = [
    { answer: "pending", text: "p", decisionId: "dec_1" },
    { answer: "denied", text: "d", findings: [] },
    { answer: "failed", text: "There is no tool X." },
    { answer: "unknown", text: "u", operationId: "op" },
  ];
  const calls = batch("rrrr");
  const results = await all(calls, {
    run: async (call) => answers[calls.indexOf(call)]!,
    isConcurrencySafe,
  });
  for (const { index, answer } of results) expect(answer).toBe(answers[index]);
  expect(results).toHaveLength(4);
});

test("S2-87 calls with the same id get a result each, told apart by their place", async () => {
  const calls = ["a", "b", "a"].map((text) => ({ callId: "same", tool: "r", input: text }));
  const results = await all(calls, {
    run: async ({ input }) => done(String(input)),
    isConcurrencySafe,
  });
  expect(results.map(({ index, answer }) => [index, answer.text])).toEqual([
    [0, "a"],
    [1, "b"],
    [2, "a"],
  ]);
});

test("S2-87 a list that its owner changes meanwhile keeps its places", async () => {
  const calls = batch("ww");
  const results = await all(calls, {
    run: async ({ callId }) => {
      calls.length = 0;
      return done(callId);
    },
    isConcurrencySafe,
  });
  expect(results.map(({ callId }) => callId)).toEqual(["w0", "w1"]);
});

test("S2-87 a place without a call is refused before anything runs", () => {
  const run = vi.fn(async () => done(""));
  const calls = [undefined, ...batch("r")] as CallRequest[];
  expect(() => orchestrate(calls, { run, isConcurrencySafe })).toThrow("a place without a call");
});

test("S2-88 a failing unsafe call does not stop what waits for it", async () => {
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

test("S2-04 S2-87 cancelling reaches running calls; the others are not started and say so", async () => {
  const stop = new AbortController();
  const { ids, started, finish, results, reading } = held("rrwr", { signal: stop.signal });
  await settle();
  expect(started.map(({ signal }) => signal.aborted)).toEqual([false, false]);
  stop.abort(new Error("the user pressed stop"));
  expect(started.map(({ signal }) => signal.reason?.message)).toEqual([
    "the user pressed stop",
    "the user pressed stop",
  ]);
  await settle();
  expect(results.map(({ callId }) => callId), "at once").toEqual(["w2", "r3"]);
  for (const { answer } of results) {
    expect(answer.answer).toBe("failed");
    expect(answer.text).toMatch(/^Not started: .*the user pressed stop.*Nothing was executed/);
  }
  await finish("r1");
  started[0]!.fail(started[0]!.signal.reason);
  await reading;
  expect(ids()).toEqual(["r0", "r1"]);
  expect(results.map(({ callId, answer }) => [callId, answer.answer]).slice(2)).toEqual([
    ["r1", "done"],
    ["r0", "failed"],
  ]);
  expect(results[3]!.answer.text).toMatch(/^The call was cancelled while it ran .*may have taken/);
});

test("S2-04 cancelling reaches a running tool through its context", async () => {
  const stop = new AbortController();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const execute = ({ context: { signal } }: ReturnType<typeof sampleCall>) => {
    begin();
    return new Promise<string>((resolve) => {
      signal.addEventListener("abort", () => resolve("stopped half way"), { once: true });
    });
  };
  const reading = all(batch("w"), {
    run: async (_, { signal }) => {
      const call = sampleCall({});
      return done(await execute({ ...call, context: { ...call.context, signal } }));
    },
    isConcurrencySafe,
    signal: stop.signal,
  });
  await begun;
  stop.abort();
  expect(await reading).toMatchObject([{ callId: "w0", answer: { text: "stopped half way" } }]);
});

test("S2-04 S2-87 a batch that was cancelled before it began runs nothing", async () => {
  const run = vi.fn(async () => done(""));
  const results = await all(batch("rwr"), { run, isConcurrencySafe, signal: AbortSignal.abort() });
  expect(run).not.toHaveBeenCalled();
  expect(results.map(({ index, answer }) => [index, answer.answer])).toEqual([
    [0, "failed"],
    [1, "failed"],
    [2, "failed"],
  ]);
});

test("S2-87 a batch cancelled by its own callbacks still gives one result per call", async () => {
  for (const who of ["run", "isConcurrencySafe"] as const) {
    const stop = new AbortController();
    let asked = 0;
    const abortAt = (place: number) => {
      asked += 1;
      if (asked > place) stop.abort();
    };
    const results = await all(batch("rrrr"), {
      run: async ({ callId }) => {
        if (who === "run") abortAt(1);
        return done(callId);
      },
      isConcurrencySafe: () => {
        if (who === "isConcurrencySafe") abortAt(1);
        return true;
      },
      signal: stop.signal,
    });
    const kinds = results.toSorted((a, b) => a.index - b.index).map(({ answer }) => answer.answer);
    const started = who === "run" ? 2 : 1;
    expect(kinds).toEqual(["done", "done", "failed", "failed"].with(1, started === 2 ? "done" : "failed"));
  }
});

test("S2-87 a call that ignores its cancellation is given up after the grace, and its late answer dropped", async () => {
  const timers = manualTimers(manualClock(0));
  const stop = new AbortController();
  const { started, results, reading } = held("rr", { signal: stop.signal, graceMs: 500, timers });
  await settle();
  stop.abort();
  await timers.advance(499);
  expect(results).toEqual([]);
  await timers.advance(1);
  await reading;
  expect(results.map(({ index, answer }) => [index, answer.answer])).toEqual([
    [0, "failed"],
    [1, "failed"],
  ]);
  expect(results[0]!.answer.text).toMatch(/no answer within 500 ms\. It may have taken effect/);
  started[0]!.answer(done("late"));
  started[1]!.fail(new Error("late"));
  await settle();
  expect(results).toHaveLength(2);
  expect(timers.open).toBe(0);
});

test("S2-87 a cancelled call that answers in time leaves no wait behind", async () => {
  const timers = manualTimers(manualClock(0));
  const stop = new AbortController();
  const { finish, reading } = held("r", { signal: stop.signal, timers });
  await settle();
  stop.abort();
  expect(timers.open).toBe(1);
  await finish("r0");
  await reading;
  expect(timers.open).toBe(0);
});
