// Small races in every order that a seed can think of: fast-check holds back each call of the store and lets them go one by
// one. When an order breaks something, it is printed in full and can be repeated by its seed.

import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { createRedactor } from "../../src/audit/redact.ts";
import { createGate, type Gate } from "../../src/gate/create-gate.ts";

import { allowAlways } from "../../src/gate/review.ts";
import type { Engine } from "../../src/store/engine.ts";
import { memoryEngine } from "../../src/store/memory/index.ts";
import { createStore } from "../../src/store/store.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { manualClock } from "../../src/util/clock.ts";
import { seededRandom } from "../../src/util/random.ts";
import { manualTimers } from "../support/manual-timers.ts";
import { scaled } from "../support/scale.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

const RUNS = scaled({ test: 60, proof: 500, full: 5_000 });
vi.setConfig({ testTimeout: 600_000 });
const START = Date.parse("2026-11-15T06:00:00.000Z");
const APPROVAL_MS = 60_000;
const SEED = process.env["SIM_SEED"];
const options = { numRuns: RUNS, ...(SEED === undefined ? {} : { seed: Number(SEED) }) };

/** Two processes over one engine whose every call waits for its turn, and a counter in production. */
function setup({ scheduler, waits }: Order) {
  const clock = manualClock(START);
  const inner = memoryEngine({ clock, random: seededRandom(1) });
  let isHeld = false;
  const held: Engine = { ...inner };
  for (const name of ["commit", "get", "find", "now"] as const) {
    const call = inner[name] as (...given: unknown[]) => Promise<unknown>;
    const later = async (...given: unknown[]) => {
      if (isHeld) await scheduler.schedule(Promise.resolve(), name);
      return call(...given);
    };
    Object.assign(held, { [name]: later });
  }
  const effects: string[] = [];
  const tool = (name: string, more = {}) =>
    defineTool({
      name,
      description: "Counts.",
      input: { type: "object", properties: { by: { type: "integer" } }, required: ["by"] },
      safety: { effect: "external", reversible: name === "counter.add" },
      dryRun: () => "would count",
      execute({ input }) {
        effects.push(`${name} ${String(input["by"])}`);
        return "counted";
      },
      ...more,
    });
  const add = tool("counter.add", {
    undo: ({ input }: { input: { by: number } }) => ({ tool: "counter.back", input }),
  });
  const process_ = (): Gate =>
    createGate({
      store: createStore(held, { redact: createRedactor({}) }),
      tenant: "acme",
      tools: [add, tool("counter.back")],
      validators: { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") },
      guard: allowAlways,
      policy: { version: "1", rules: [] },
      approvalMs: APPROVAL_MS,
      clock,
      timers: manualTimers(clock),
      random: seededRandom(2),
    });
  const gates = [process_(), process_()] as const;
  const session = (gate: Gate) => gate.sessions.open({ id: "s-1", agent: "agent:one" });
  const call = { callId: "c-1", tool: "counter.add", input: { by: 1 } };
  /** One call that waits for a yes. */
  const proposed = async () => {
    const answer = await session(gates[0]).call(call);
    if (answer.answer !== "pending") throw new Error(`expected a question: ${answer.text}`);
    const { hash } = await gates[0].interactions.get(answer.interactionId);
    return { id: answer.interactionId, hash };
  };
  /** From here on every call of the store waits, and all of this happens at once, give or take some turns. */
  const race = async (...work: readonly (() => Promise<unknown>)[]) => {
    isHeld = true;
    const late = async (one: () => Promise<unknown>, turns = 0) => {
      for (let turn = 0; turn < turns; turn += 1) {
        await scheduler.schedule(Promise.resolve(), "a turn passes");
      }
      return one();
    };
    const all = Promise.allSettled(work.map((one, index) => late(one, waits[index])));
    await scheduler.waitFor(all);
    isHeld = false;
    return all;
  };
  return { gates, session, proposed, race, effects, clock };
}

const isDone = (one: PromiseSettledResult<unknown>) => one.status === "fulfilled";

/** An order of everything, and how many turns late each one begins. */
interface Order {
  readonly scheduler: fc.Scheduler;
  readonly waits: readonly number[];
}

const orders = fc.record({
  scheduler: fc.scheduler(),
  waits: fc.tuple(fc.nat({ max: 24 }), fc.nat({ max: 24 })),
});

/** Runs it in many orders. */
const inAnyOrder = (work: (order: Order) => Promise<void>) =>
  fc.assert(fc.asyncProperty(orders, work), options);

test("two people approve and reject concurrently: one answer counts, and the call runs once or never [G14 I10 I7]", async () => {
  await inAnyOrder(async (order) => {
    const { gates, proposed, race, effects } = setup(order);
    const { id, hash } = await proposed();
    const [yes, no] = await race(
      () => gates[0].interactions.approve(id, { hash, by: "person:ada" }),
      () => gates[1].interactions.reject(id, { hash, by: "person:bob" }),
    );
    expect([yes, no].filter((one) => one !== undefined && isDone(one))).toHaveLength(1);
    expect(effects).toHaveLength(yes !== undefined && isDone(yes) ? 1 : 0);
  });
});

test("two approvals in two processes: one counts, and the call runs once [G14 I7 T8]", async () => {
  await inAnyOrder(async (order) => {
    const { gates, proposed, race, effects } = setup(order);
    const { id, hash } = await proposed();
    const both = await race(
      () => gates[0].interactions.approve(id, { hash, by: "person:ada" }),
      () => gates[1].interactions.approve(id, { hash, by: "person:bob" }),
    );
    expect(both.filter(isDone)).toHaveLength(1);
    expect(effects).toEqual(["counter.add 1"]);
    expect((await gates[0].decisions.get(id)).state).toBe("executed");
  });
});

test("an answer races its deadline: accepted in time, or expired, never both [G14 I13 I10]", async () => {
  await inAnyOrder(async (order) => {
    const { gates, proposed, race, effects, clock } = setup(order);
    const { id, hash } = await proposed();
    const [yes] = await race(
      () => gates[0].interactions.approve(id, { hash, by: "person:ada" }),
      async () => {
        clock.advance(APPROVAL_MS + 1);
        await gates[1].interactions.sweep();
      },
    );
    const { outcome } = await gates[0].interactions.get(id);
    const { state } = await gates[0].decisions.get(id);
    // In time to be heard is not in time to be executed: the approval itself may be over by then.
    if (outcome === "approved") expect(["executed", "failed"]).toContain(state);
    else expect([outcome, state]).toEqual(["expired", "rejected_ml"]);
    expect(effects).toHaveLength(state === "executed" ? 1 : 0);
    if (outcome === "expired") expect(yes?.status).toBe("rejected");
  });
});

test("two answers and a deadline race: only the first answer in time is accepted [G14 I10 I13]", async () => {
  await inAnyOrder(async (order) => {
    const { gates, session, race, clock } = setup(order);
    const { interactionId: id } = await session(gates[0]).ask({ callId: "q-1", text: "Which?" });
    const { hash, deadline } = await gates[0].interactions.get(id);
    const answer = (gate: Gate, by: string) => () =>
      gate.interactions.answer(id, { hash, by, answer: by });
    const both = await race(answer(gates[0], "person:ada"), async () => {
      clock.advance(APPROVAL_MS + ((order.waits[0] ?? 0) % 2));
      return answer(gates[1], "person:bob")();
    });
    const heard = both.filter(isDone).length;
    const trail = await gates[0].audit.read({ after: 0, limit: 100 });
    const answered = trail.filter(({ type }) => type === "interaction.answered");
    expect(answered).toHaveLength(heard);
    expect(heard).toBeLessThanOrEqual(1);
    for (const { at } of answered) expect(at <= deadline, `${at} against ${deadline}`).toBe(true);
  });
});

test("the kill switch races an approval: nothing starts after the switch was acknowledged [G14 I30 T38]", async () => {
  await inAnyOrder(async (order) => {
    const { gates, proposed, race, effects } = setup(order);
    const { id, hash } = await proposed();
    let whenStopped = -1;
    await race(
      () => gates[0].interactions.approve(id, { hash, by: "person:ada" }),
      async () => {
        await gates[1].killSwitch.stop("look first", { actor: "person:ops" });
        whenStopped = effects.length;
      },
    );
    const trail = await gates[0].audit.read({ after: 0, limit: 100 });
    const stopped = trail.find(({ type }) => type === "switch.stopped")?.seq ?? 0;
    const started = trail.find(({ type }) => type === "operation.started")?.seq;
    if (started === undefined) expect(effects).toEqual([]);
    else expect(started).toBeLessThan(stopped);
    expect(whenStopped).toBeGreaterThanOrEqual(0);
  });
});

test("a session is rolled back twice concurrently: each call is undone once [G14 I28 T9]", async () => {
  await inAnyOrder(async (order) => {
    const { gates, proposed, race, effects, session } = setup(order);
    const { id, hash } = await proposed();
    await gates[0].interactions.approve(id, { hash, by: "person:ada" });
    await race(...gates.map((gate) => () => session(gate).rollback("person:ops")));
    expect(effects).toEqual(["counter.add 1", "counter.back 1"]);
    expect((await gates[0].operations.get(`${id}.0`)).status).toBe("rolled_back");
  });
});

test("an approved call races a recovery that takes it for abandoned: it runs once, with a true outcome [G14 I7 I28]", async () => {
  await inAnyOrder(async (order) => {
    const { gates, proposed, race, effects, clock } = setup(order);
    const { id, hash } = await proposed();
    await race(
      () => gates[0].interactions.approve(id, { hash, by: "person:ada" }),
      async () => {
        clock.advance(31_000);
        await gates[1].recover();
      },
    );
    expect(effects).toEqual(["counter.add 1"]);
    clock.advance(31_000);
    await gates[1].recover();
    // Taken over while it ran, its outcome is unknown: a person is asked, and nothing is repeated.
    const { state } = await gates[0].decisions.get(id);
    const open = (await gates[0].interactions.list()).map(({ type }) => type);
    expect([state, ...open]).toEqual(
      state === "executed" ? ["executed"] : ["approved", "connection_lost"],
    );
  });
});
