import { getEventListeners } from "node:events";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type ManualTimers, manualTimers } from "../../tests/support/manual-timers.ts";
import { batch, done, isConcurrencySafe } from "../../tests/support/orchestrate-held.ts";
import type { CallAnswer } from "../model/operation.ts";
import { type ManualClock, manualClock } from "../util/clock.ts";
import { type CallResult, orchestrate } from "./orchestrate.ts";

const LONGER_THAN_ALL_MS = 10_000;
const GRACE_MS = 50;

interface Plan {
  readonly letter: "r" | "w";
  readonly ms: number;
  readonly end: "answer" | "throw" | "reject" | "nothing" | "deaf";
}

const plans = fc.array(
  fc.record<Plan>({
    letter: fc.constantFrom("r", "r", "w"),
    ms: fc.nat(20),
    end: fc.constantFrom("answer", "answer", "throw", "reject", "nothing", "deaf"),
  }),
  { maxLength: 20 },
);
const maxAtOnce = fc.integer({ min: -1, max: 4 });
const limitOf = (max: number) => (max > 0 ? max : 10);

interface Trace {
  readonly results: CallResult[];
  /** In the order in which it happened. */
  readonly events: {
    readonly what: "start" | "end";
    readonly index: number;
    readonly at: number;
  }[];
  openWaits: number;
  openListeners: number;
}

interface Scene {
  readonly clock: ManualClock;
  readonly timers: ManualTimers;
  readonly stop: AbortController;
}

/** A call as planned. The deaf one does not listen to its signal; the others end when they are cancelled. */
async function act(plan: Plan, { timers }: Scene, signal: AbortSignal): Promise<CallAnswer> {
  await timers.sleep(plan.ms, plan.end === "deaf" ? undefined : signal);
  if (plan.end === "reject") throw "not even an error";
  if (plan.end === "nothing") return undefined as unknown as CallAnswer;
  return done("as planned");
}

async function play(
  all: readonly Plan[],
  max: number,
  cancelAt?: number,
  readMs = 0,
): Promise<Trace> {
  const clock = manualClock(0);
  const scene = { clock, timers: manualTimers(clock), stop: new AbortController() };
  const trace: Trace = { results: [], events: [], openWaits: 0, openListeners: 0 };
  const note = (what: "start" | "end", index: number) =>
    trace.events.push({ what, index, at: clock.now() });
  const calls = batch(all.map(({ letter }) => letter).join(""));
  const iterator = orchestrate(calls, {
    run: (call, { signal }) => {
      const index = calls.findIndex(({ callId }) => callId === call.callId);
      const plan = all[index]!;
      note("start", index);
      if (plan.end !== "throw") return act(plan, scene, signal).finally(() => note("end", index));
      note("end", index);
      throw new Error("at once");
    },
    isConcurrencySafe,
    maxAtOnce: max,
    signal: scene.stop.signal,
    graceMs: GRACE_MS,
    timers: scene.timers,
  });
  if (cancelAt !== undefined) scene.timers.after(cancelAt, () => scene.stop.abort());
  const reading = (async () => {
    for await (const result of iterator) {
      trace.results.push(result);
      if (readMs > 0) await scene.timers.sleep(readMs);
    }
  })();
  await scene.timers.advance(LONGER_THAN_ALL_MS);
  await reading;
  trace.openWaits = scene.timers.open;
  trace.openListeners = getEventListeners(scene.stop.signal, "abort").length;
  return trace;
}

function expectOneResultEach(all: readonly Plan[], { results }: Trace): void {
  expect(results.map(({ index }) => index).toSorted((a, b) => a - b)).toEqual([...all.keys()]);
  for (const { index, callId, tool } of results) {
    expect([callId, tool]).toEqual([`${all[index]!.letter}${index}`, all[index]!.letter]);
  }
}

/** Replays the events: which calls may be running when another one starts? */
function expectOrder(all: readonly Plan[], { events }: Trace, limit: number): void {
  const running = new Set<number>();
  let started = -1;
  for (const { what, index } of events) {
    if (what === "end") {
      running.delete(index);
      continue;
    }
    expect(index, "started in order, each once").toBe(started + 1);
    started = index;
    const letters = [...running].map((other) => all[other]!.letter);
    if (all[index]!.letter === "w") expect(letters, "a write starts alone").toEqual([]);
    else expect(letters, "nothing starts beside a write").not.toContain("w");
    running.add(index);
    expect(running.size).toBeLessThanOrEqual(limit);
  }
}

/** When each call has to start if no call waits longer than the rules say. */
function expectedStarts(all: readonly Plan[], limit: number): number[] {
  let busy: number[] = [];
  let now = 0;
  let before = "";
  return all.map(({ letter, ms, end }) => {
    if (letter === "w" || before === "w") {
      now = Math.max(now, ...busy);
      busy = [];
    }
    if (busy.length === limit)
      now = Math.max(now, busy.splice(busy.indexOf(Math.min(...busy)), 1)[0]!);
    before = letter;
    busy.push(now + (end === "throw" ? 0 : ms));
    return now;
  });
}

test("order around writes is kept under any delays, and nobody waits without need [S2-82 S2-83 S2-84 S2-87]", async () => {
  await fc.assert(
    fc.asyncProperty(plans, maxAtOnce, fc.constantFrom(0, 0, 7), async (all, max, readMs) => {
      const trace = await play(all, max, undefined, readMs);
      expectOneResultEach(all, trace);
      expectOrder(all, trace, limitOf(max));
      const starts = trace.events.filter(({ what }) => what === "start").map(({ at }) => at);
      expect(starts).toEqual(expectedStarts(all, limitOf(max)));
      for (const { index, answer } of trace.results) {
        const isGood = ["answer", "deaf"].includes(all[index]!.end);
        expect(answer.answer).toBe(isGood ? "done" : "failed");
      }
      expect([trace.openWaits, trace.openListeners]).toEqual([0, 0]);
    }),
    { numRuns: 150 },
  );
});

test("the same when the batch is cancelled at any moment [S2-04 S2-83 S2-87]", async () => {
  await fc.assert(
    fc.asyncProperty(plans, maxAtOnce, fc.nat(80), async (all, max, cancelAt) => {
      const trace = await play(all, max, cancelAt);
      expectOneResultEach(all, trace);
      expectOrder(all, trace, limitOf(max));
      const started = new Set(trace.events.map(({ index }) => index));
      for (const { index, answer } of trace.results) {
        expect(answer.text.startsWith("Not started"), "says so, and only then").toBe(
          !started.has(index),
        );
      }
      for (const { what, at } of trace.events) {
        if (what === "start") expect(at).toBeLessThanOrEqual(cancelAt);
      }
      expect([trace.openWaits, trace.openListeners]).toEqual([0, 0]);
    }),
    { numRuns: 150 },
  );
});
