// What a recovery must and must not do, in one process: the point where the first one "dies" throws instead of killing.

import { expect, test, vi } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import type { CrashPoint } from "../../src/gate/options.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { manualClock } from "../../src/util/clock.ts";
import { manualTimers } from "../support/manual-timers.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

const START = Date.parse("2026-11-15T06:00:00.000Z");
const LEASE = 30_000;

/** A counter that takes each key once. Taking back 1 can be made to hang, as if the process had been cut off there. */
function counter() {
  const hanging = { isWanted: false, hangs: false };
  const effects: string[] = [];
  const seen = new Set<string>();
  const tool = (name: string, more: { readonly version?: string } = {}): Tool =>
    defineTool({
      name,
      description: "Adds to a counter.",
      input: { type: "object", properties: { by: { type: "integer" } }, required: ["by"] },
      safety: { effect: "external", reversible: true },
      idempotency: "keyed",
      dryRun: ({ input }) => `adds ${(input as { by: number }).by}`,
      execute({ input, idempotencyKey }) {
        const { by } = input as { by: number };
        if (by === -1 && hanging.isWanted) {
          hanging.hangs = true;
          return new Promise<string>(() => {});
        }
        if (!seen.has(idempotencyKey)) effects.push(String(by));
        seen.add(idempotencyKey);
        return "added";
      },
      undo: ({ input }) => ({ tool: "counter.back", input: { by: -(input as { by: number }).by } }),
      ...more,
    });
  const add = (more = {}) => tool("counter.add", more);
  return { effects, hanging, add, back: tool("counter.back") };
}

class Gone extends Error {}

/** Any number of processes, one after the other, over the same store and the same production. */
function setup() {
  const clock = manualClock(START);
  const store = memoryStore({ clock });
  const production = counter();
  /** Goes away at the given point, the n-th time it gets there. */
  const process_ = (at = "", tools: readonly Tool[] = [production.add(), production.back]) => {
    const passed = new Map<CrashPoint, number>();
    return createGate({
      store,
      tenant: "acme",
      tools,
      validators: { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") },
      guard: allowAlways,
      policy: NO_RULES,
      clock,
      // Of its own and never moved: a process that is gone must not renew anything.
      timers: manualTimers(manualClock(START)),
      leaseMs: LEASE,
      at(point) {
        const times = (passed.get(point) ?? 0) + 1;
        passed.set(point, times);
        if (at === `${point}:${times}`) throw new Gone(at);
      },
    });
  };
  /** Three calls as one decision, approved in a process that goes away. Answers the decision's id. */
  const approveAndDie = async (at: string): Promise<string> => {
    const gate = process_(at);
    const session = gate.sessions.open({ id: "s-1", agent: "agent:one" });
    const calls = [1, 2, 3].map((by) => ({
      callId: `c-${by}`,
      tool: "counter.add",
      input: { by },
    }));
    const staged = await session.stage(calls);
    if (staged.answer !== "pending") throw new Error("expected a question");
    const { decisionId: id } = staged;
    const hash = (await gate.interactions.shown(id))?.hash ?? "";
    await expect(gate.interactions.approve(id, { hash, by: "person:ada" })).rejects.toThrow(Gone);
    return id;
  };
  const pass = () => clock.advance(LEASE + 1);
  return { ...production, process_, approveAndDie, pass };
}

test("live calls are left alone, abandoned ones are finished once, and a second recovery finds none", async () => {
  const { process_, approveAndDie, pass, effects } = setup();
  const id = await approveAndDie("S5.after:2");
  const gate = process_();
  expect(await gate.recover()).toEqual({ operations: [], decisions: [], proposals: [], left: [] });
  pass();
  const recovered = await gate.recover();
  expect(recovered.operations.map(({ answer }) => answer.answer)).toEqual(["done"]);
  expect(recovered.decisions.map(({ answers }) => answers.length)).toEqual([1]);
  expect(effects).toEqual(["1", "2", "3"]);
  expect((await gate.decisions.get(id)).state).toBe("executed");
  pass();
  expect(await gate.recover()).toEqual({ operations: [], decisions: [], proposals: [], left: [] });
});

test("an approval whose process died before the start is executed by the next one [R17]", async () => {
  const { process_, approveAndDie, pass, effects } = setup();
  await approveAndDie("S5.before:1");
  pass();
  await Promise.all([process_().recover(), process_().recover()]);
  expect(effects).toEqual(["1", "2", "3"]);
});

test("a recovery starts nothing while the kill switch is on, and continues afterwards [I30 T38]", async () => {
  const { process_, approveAndDie, pass, effects } = setup();
  const id = await approveAndDie("S5.after:2");
  pass();
  const gate = process_();
  await gate.killSwitch.stop("look first", { actor: "person:ada" });
  expect(await gate.recover()).toEqual({ operations: [], decisions: [], proposals: [], left: [] });
  expect(effects).toEqual(["1"]);
  await gate.killSwitch.resume("looked", { actor: "person:ada" });
  await gate.recover();
  expect(effects).toEqual(["1", "2", "3"]);
  expect((await gate.decisions.get(id)).state).toBe("executed");
});

test("a started compensation is finished, never reversed [I28]", async () => {
  const { process_, approveAndDie, pass, effects, hanging, add, back } = setup();
  const id = await approveAndDie("S5.before:3");
  pass();
  // The third call is refused without an operation of its own, because its tool is another one now.
  hanging.isWanted = true;
  void process_("", [add({ version: "2" }), back]).recover();
  await vi.waitFor(() => expect(hanging.hangs).toBe(true), 60_000);
  expect(effects).toEqual(["1", "2", "-2"]);
  // The decision is old enough, but that compensation has not been given up: closing it now would tell half of it.
  expect((await process_().recover()).decisions).toEqual([]);
  hanging.isWanted = false;
  pass();
  // With the old tool back the third call could run, but the second is gone already.
  const gate = process_();
  await gate.recover();
  expect(effects).toEqual(["1", "2", "-2", "-1"]);
  expect((await gate.decisions.get(id)).state).toBe("failed");
});

test("an outcome is recorded even if its decision was closed by hand meanwhile [I14]", async () => {
  const { process_, approveAndDie, pass } = setup();
  const id = await approveAndDie("S7.before:3");
  const gate = process_();
  await gate.decisions.markFailed(id, "I have seen enough", { actor: "person:ada" });
  pass();
  const { operations } = await gate.recover();
  expect(operations.map(({ answer }) => answer.answer)).toEqual(["done"]);
  expect((await gate.operations.get(`${id}.2`)).status).toBe("success");
  pass();
  expect((await gate.recover()).operations).toEqual([]);
});

test("a process without the tool leaves operation and decision to one that has it", async () => {
  const { process_, approveAndDie, pass, effects } = setup();
  const id = await approveAndDie("S5.after:1");
  pass();
  const { left, operations } = await process_("", []).recover();
  expect(operations).toEqual([]);
  expect(left).toMatchObject([{ id: `${id}.0` }]);
  expect(effects).toEqual([]);
  await process_().recover();
  expect(effects).toEqual(["1", "2", "3"]);
});

test("a process without the tools neither continues nor undoes a decision", async () => {
  const { process_, approveAndDie, pass, effects, add } = setup();
  const id = await approveAndDie("S5.before:2");
  pass();
  for (const tools of [[], [add()]]) {
    const { left } = await process_("", tools).recover();
    expect(left).toMatchObject([{ id }]);
  }
  expect(effects).toEqual(["1"]);
  expect((await process_().decisions.get(id)).state).toBe("approved");
});

test("a bundle whose targets changed meanwhile is undone, not continued [I4]", async () => {
  const { process_, approveAndDie, pass, effects, add, back } = setup();
  const id = await approveAndDie("S5.before:2");
  pass();
  const now = { ...add(), dryRun: async () => ({ summary: "other", preview: "", impact: {} }) };
  await process_("", [now, back]).recover();
  expect(effects).toEqual(["1", "-1"]);
  const { state, executionError } = await process_().decisions.get(id);
  expect(state).toBe("failed");
  expect(executionError).toContain("not what was approved");
});
