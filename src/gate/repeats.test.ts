import { expect, test } from "vitest";
import { LEASE_MS, oneWorker } from "../../tests/support/one-worker.ts";
import { SallyportError } from "../model/errors.ts";
import type { ToolInput } from "../tools/define-tool.ts";
import { defineTool, type ProbeSheet, type ToolSheet } from "../tools/define-tool.ts";
import type { ToolCall, ToolResult } from "../tools/tool.ts";

type Said = string | ToolResult;
const NOT_DONE = { happened: false } as const;
const forever = () => new Promise<never>(() => {});

/** A tool whose first call is lost on its way; what it says when it is asked is the test's. */
function setup(own: Partial<ToolSheet<ToolInput, Said>>) {
  const fences: number[] = [];
  const tool = defineTool({
    name: "shop.order",
    description: "Orders something.",
    input: { type: "object", properties: {}, additionalProperties: false },
    safety: { effect: "external" },
    execute({ fence }) {
      fences.push(fence);
      if (fences.length === 1) throw new SallyportError("outcome_unknown");
      return "ordered";
    },
    ...own,
  });
  return { ...oneWorker(tool, { timeoutMs: 4 * LEASE_MS }), fences };
}

/** A probe that answers when the test says so. */
function slowProbe() {
  const { promise, resolve } = Promise.withResolvers<ProbeSheet<Said>>();
  return { probe: () => promise, answer: resolve };
}

test("a call that is made once more is on record before it is made, under a fence of its own [T8 T34]", async () => {
  const { worker, order, operations, fences, trail } = setup({ idempotency: "keyed" });
  expect(await worker().run(order)).toMatchObject({ status: "done" });
  expect(fences).toEqual([1, 2]);
  expect(await trail()).toEqual(["started", "attempted", "succeeded"]);
  expect(await operations.get("op-1")).toMatchObject({ attempt: 2, fence: 2, status: "success" });
});

test.each([
  ["throws: there was no answer, so nobody knows", "unknown", 3],
  ["says no under the key: that holds for the lost call as well", "failed", 2],
] as const)(
  "a keyed tool that is called again after a lost answer and %s [T8 I6]",
  async (how, status, calls) => {
    let called = 0;
    const { worker, order, operations } = setup({
      idempotency: "keyed",
      execute() {
        called += 1;
        if (called === 1) throw new SallyportError("outcome_unknown");
        if (how.startsWith("throws")) throw new Error("connection refused");
        return { text: "sold out", isError: true };
      },
    });
    expect(await worker().run(order)).toMatchObject({ status });
    expect(called).toBe(calls);
    const { error } = await operations.get("op-1");
    expect(error).toContain(status === "unknown" ? "connection refused" : "sold out");
  },
);

test("a target is probed under a newer fence than the lost call had, and called under a newer one still [T8 T34]", async () => {
  const asked: number[] = [];
  const { worker, order, fences, trail } = setup({
    async probe({ fence }) {
      asked.push(fence);
      return NOT_DONE;
    },
  });
  expect(await worker().run(order)).toMatchObject({ status: "done" });
  expect({ asked, fences }).toEqual({ asked: [2], fences: [1, 3] });
  expect(await trail()).toEqual(["started", "attempted", "attempted", "succeeded"]);
});

test("nobody takes over while a probe is waited for, however long it takes [T8 T34]", async () => {
  const { probe, answer } = slowProbe();
  const { worker, order, operations, timers, fences } = setup({ probe });
  const running = worker().run(order);
  await timers.advance(2 * LEASE_MS);
  expect(await operations.listAbandoned(10)).toEqual([]);
  answer({ happened: false });
  expect(await running).toMatchObject({ status: "done" });
  expect(fences).toHaveLength(2);
});

test("who was taken for dead while it probed calls nothing again [T8 T34]", async () => {
  const { probe, answer } = slowProbe();
  const { worker, order, operations, clock, fences } = setup({ probe });
  const running = worker().run(order);
  // The process sleeps past its lease; another one takes over and calls.
  await new Promise((resolve) => setImmediate(resolve));
  clock.advance(LEASE_MS);
  const second = worker().resume(order, await operations.get("op-1"));
  await new Promise((resolve) => setImmediate(resolve));
  answer({ happened: false });
  expect([(await running).status, (await second).status].sort()).toEqual(["done", "overtaken"]);
  expect(fences, "lost once, made once").toHaveLength(2);
});

test("a probe that never answers leaves the outcome unknown, for a person to look at [T8]", async () => {
  const { worker, order, operations, timers, fences } = setup({ probe: forever });
  const running = worker().run(order);
  await timers.advance(4 * LEASE_MS);
  expect(await running).toMatchObject({ status: "unknown" });
  expect((await operations.get("op-1")).error).toContain("the probe failed");
  expect(fences).toHaveLength(1);
});

test.each([
  ["while it is called, with a key", { idempotency: "keyed" }, "unknown"],
  ["while it is called, with a probe", { probe: async () => NOT_DONE }, "unknown"],
  ["while it is probed", { probe: async () => NOT_DONE }, "failed"],
] as const)("nothing is called once more after a stop %s [T38 I30]", async (when, own, status) => {
  const { worker, order, killSwitch, operations, fences } = setup(own);
  const { tool } = order;
  const part = when === "while it is probed" ? "probe" : "execute";
  const stops = {
    ...tool,
    async [part](call: ToolCall) {
      await killSwitch.stop("wait", { actor: "person:ada" });
      return tool[part]?.(call);
    },
  };
  expect(await worker().run({ ...order, tool: stops })).toMatchObject({ status });
  expect(fences).toHaveLength(1);
  expect((await operations.get("op-1")).error).toContain("may not be called again");
});

test("who gave up waiting is told what a probe finds out, and nothing is called for them again [S2-04]", async () => {
  for (const [happened, status] of [
    [true, "done"],
    [false, "failed"],
  ] as const) {
    const stop = new AbortController();
    let wasAborted = true;
    const { worker, order, fences } = setup({
      async probe({ signal }) {
        stop.abort(new Error("no longer wanted"));
        wasAborted = signal.aborted;
        return happened ? { happened, result: "R-1" } : { happened };
      },
    });
    const executed = await worker().run({ ...order, signal: stop.signal });
    expect([executed.status, wasAborted, fences.length]).toEqual([status, false, 1]);
  }
});

test("what nobody waits for any more is not called again, although its key would allow it [S2-04]", async () => {
  const stop = new AbortController();
  const { worker, order, trail } = setup({
    idempotency: "keyed",
    execute() {
      stop.abort(new Error("no longer wanted"));
      throw new SallyportError("outcome_unknown");
    },
  });
  expect(await worker().run({ ...order, signal: stop.signal })).toMatchObject({
    status: "unknown",
  });
  expect(await trail()).toEqual(["started", "attempted", "lost", "interaction.opened"]);
});

test("an undo that is never made keeps no call from being settled; it counts as irreversible [T9]", async () => {
  const { worker, order, operations, timers } = setup({
    safety: { effect: "write", reversible: true },
    execute: () => "ordered",
    undo: forever,
  });
  const running = worker().run(order);
  await timers.advance(2 * LEASE_MS);
  expect(await operations.listAbandoned(10), "it is held meanwhile").toEqual([]);
  await timers.advance(2 * LEASE_MS);
  expect(await running).toMatchObject({ status: "done" });
  const { undo, output } = await operations.get("op-1");
  expect(undo).toBeUndefined();
  expect(output).toContain("no way to undo it could be recorded");
});
