import { getEventListeners } from "node:events";
import { expect, test, vi } from "vitest";
import { manualTimers } from "../../tests/support/manual-timers.ts";
import {
  batch,
  done,
  held,
  isConcurrencySafe,
  resultsOf,
  settle,
} from "../../tests/support/orchestrate-held.ts";
import { defineTool, sampleCall } from "../tools/define-tool.ts";
import { manualClock } from "../util/clock.ts";
import { type CallHooks, orchestrate } from "./orchestrate.ts";

test("cancelling reaches running calls; the others are not started and say so [S2-04 S2-87]", async () => {
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
  expect(
    results.map(({ callId }) => callId),
    "at once",
  ).toEqual(["w2", "r3"]);
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

test("a tool hears of the cancellation and reports progress through its context [S2-04 S2-05]", async () => {
  const stop = new AbortController();
  const news: unknown[] = [];
  const tool = defineTool({
    name: "slow",
    description: "d",
    input: { type: "object" },
    execute: ({ signal, progress }) => {
      progress({ message: "half way", done: 0.5 });
      return new Promise<string>((resolve) => {
        signal.addEventListener("abort", () => resolve("stopped half way"), { once: true });
      });
    },
  });
  const reading = resultsOf(batch("w"), {
    run: async (_, hooks) => done((await tool.execute(sampleCall({}, hooks))).text),
    isConcurrencySafe,
    signal: stop.signal,
    onProgress: (callId, report) => news.push([callId, report]),
  });
  await settle();
  expect(news, "while it runs").toEqual([["w0", { message: "half way", done: 0.5 }]]);
  stop.abort();
  expect(await reading).toMatchObject([{ callId: "w0", answer: { text: "stopped half way" } }]);
});

test("a batch that was cancelled before it began runs nothing [S2-04 S2-87]", async () => {
  const run = vi.fn(async () => done(""));
  const results = await resultsOf(batch("rwr"), {
    run,
    isConcurrencySafe,
    signal: AbortSignal.abort(),
  });
  expect(run).not.toHaveBeenCalled();
  expect(results.map(({ index, answer }) => [index, answer.answer])).toEqual([
    [0, "failed"],
    [1, "failed"],
    [2, "failed"],
  ]);
});

test("a batch cancelled by its own callbacks still gives one result per call [S2-87]", async () => {
  for (const who of ["run", "isConcurrencySafe"] as const) {
    const stop = new AbortController();
    let asked = 0;
    const abortAt = (place: number) => {
      asked += 1;
      if (asked > place) stop.abort();
    };
    const results = await resultsOf(batch("rrrr"), {
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
    const inOrder = results.toSorted((a, b) => a.index - b.index);
    expect(inOrder.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
    const second = who === "run" ? "done" : "failed";
    expect(inOrder.map(({ answer }) => answer.answer)).toEqual([
      "done",
      second,
      "failed",
      "failed",
    ]);
  }
});

test("a call that ignores its cancellation is given up after the grace, and its late answer dropped [S2-87]", async () => {
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

test("a cancelled call that answers in time leaves no wait behind [S2-87]", async () => {
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

test("progress reaches the caller with the call's id, until the call has answered [S2-05]", async () => {
  const news: unknown[] = [];
  const { started, finish } = held("rr", {
    onProgress: (callId, report) => news.push([callId, report]),
  });
  await settle();
  const report = { message: "1 of 3" };
  started[1]!.progress(report);
  started[0]!.progress({ message: "other" });
  expect(news).toEqual([
    ["r1", report],
    ["r0", { message: "other" }],
  ]);
  await finish("r1");
  started[1]!.progress({ message: "too late" });
  expect(news).toHaveLength(2);
});

test("a listener that throws or rejects disturbs nobody, and none is needed [S2-05]", async () => {
  const listeners = [
    () => {
      throw new Error("listener");
    },
    () => Promise.reject(new Error("listener")),
    undefined,
  ];
  for (const onProgress of listeners) {
    const results = await resultsOf(batch("rw"), {
      run: async ({ callId }, { progress }) => {
        progress({ message: "m" });
        return done(callId);
      },
      isConcurrencySafe,
      ...(onProgress && { onProgress: onProgress as () => void }),
    });
    await settle();
    expect(results.map(({ answer }) => answer.answer)).toEqual(["done", "done"]);
  }
});

test("a reader that leaves aborts what runs, starts nothing more and leaves nothing behind [S2-04]", async () => {
  const stop = new AbortController();
  const timers = manualTimers(manualClock(0));
  const running: CallHooks[] = [];
  const onProgress = vi.fn();
  const iterator = orchestrate(batch("rrrw"), {
    run: ({ callId }, hooks) => {
      if (callId === "r0") return Promise.resolve(done(callId));
      running.push(hooks);
      return new Promise((_, reject) => {
        hooks.signal.addEventListener("abort", () => reject(hooks.signal.reason), { once: true });
      });
    },
    isConcurrencySafe,
    signal: stop.signal,
    onProgress,
    timers,
  });
  for await (const { callId } of iterator) {
    expect(callId).toBe("r0");
    expect(getEventListeners(stop.signal, "abort")).toHaveLength(1);
    break;
  }
  expect(running.map(({ signal }) => signal.aborted)).toEqual([true, true]);
  await settle();
  running[0]!.progress({ message: "nobody listens" });
  stop.abort();
  await settle();
  expect(running, "w3 was not started").toHaveLength(2);
  expect(onProgress).not.toHaveBeenCalled();
  expect(getEventListeners(stop.signal, "abort")).toEqual([]);
  expect(timers.open).toBe(0);
  expect(await iterator.next()).toEqual({ done: true, value: undefined });
});

test("a reader can leave while it waits for a result, as a destroyed stream does [S2-04]", async () => {
  const { started, iterator, reading, results } = held("rw");
  await settle();
  await iterator.return?.();
  await reading;
  expect(results).toEqual([]);
  expect(started.map(({ signal }) => signal.aborted)).toEqual([true]);
});

test("a batch abandoned by its own callbacks starts nothing more [S2-04]", async () => {
  for (const who of ["run", "isConcurrencySafe"] as const) {
    const started: CallHooks[] = [];
    const leave = (where: typeof who) => {
      if (where === who && started.length === 1) void iterator.return?.();
    };
    const iterator = orchestrate(batch("rrr"), {
      run: (_, hooks) => {
        started.push(hooks);
        leave("run");
        return new Promise(() => {});
      },
      isConcurrencySafe: () => {
        leave("isConcurrencySafe");
        return true;
      },
    });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(started.map(({ signal }) => signal.aborted)).toEqual([true]);
  }
});

test("a call that goes on after its reader has left reports to nobody [S2-05]", async () => {
  const onProgress = vi.fn();
  const { started, iterator, finish } = held("r", { onProgress });
  await settle();
  await iterator.return?.();
  started[0]!.progress({ message: "still here" });
  await finish("r0");
  expect(onProgress).not.toHaveBeenCalled();
});

test("a reader that leaves before it began keeps everything from running", async () => {
  const run = vi.fn(async () => done(""));
  const iterator = orchestrate(batch("rw"), { run, isConcurrencySafe });
  await iterator.return?.();
  expect(await iterator.next()).toEqual({ done: true, value: undefined });
  expect(run).not.toHaveBeenCalled();
});

test("after a batch has ended, the caller's signal holds nothing of it", async () => {
  const { signal } = new AbortController();
  for (let round = 0; round < 3; round += 1) {
    await resultsOf(batch("rwr"), { run: async () => done(""), isConcurrencySafe, signal });
  }
  expect(getEventListeners(signal, "abort")).toEqual([]);
});
