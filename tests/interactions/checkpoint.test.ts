// A pause that a tool requests, and what a confirmation stands for: a staged record always has a person to wait for.

import { expect, test } from "vitest";
import type { GateOptions } from "../../src/gate/options.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { manualClock } from "../../src/util/clock.ts";
import { manualTimers } from "../support/manual-timers.ts";
import { AGENT, decisionIdOf, openGate, PERSON, request, rules } from "../support/port-world.ts";
import { answers, codeOf, HOUR, no, onlyOpen, onStores, set, yes } from "./inbox-world.ts";

/** Allowed by the rules, so that nothing but the checkpoint stands in the way. */
function guarded() {
  const effects: string[] = [];
  const tool = defineTool({
    name: "bank.pay",
    description: "Pays.",
    input: { type: "object", properties: { cents: { type: "integer" } }, required: ["cents"] },
    safety: { effect: "external", checkpoint: true },
    execute({ input }) {
      effects.push(String(input["cents"]));
      return "paid";
    },
  });
  const allowed = { id: "pay", effect: "allow", tool: "bank.pay", reason: "a test" } as const;
  return { effects, over: { tools: [tool], policy: rules(allowed) } };
}
const pay = (cents: number, key = `k-${cents}`) => ({ ...request("bank.pay", { cents }), key });

const HANDLERS: Readonly<Record<string, { checkpoint?: GateOptions["checkpoint"]; paid: number }>> =
  {
    go: { checkpoint: () => ({ answer: "go" }), paid: 1 },
    refuse: { checkpoint: () => ({ answer: "refuse", reason: "wrong account" }), paid: 0 },
    cancelled: { checkpoint: () => ({ answer: "cancelled" }), paid: 0 },
    "an error": { checkpoint: () => Promise.reject(new Error("down")), paid: 0 },
    "no handler": { paid: 0 },
  };

for (const [answer, { checkpoint, paid }] of Object.entries(HANDLERS)) {
  test(`checkpoint of a call through the port: ${answer} [I-38 I-39 S2-48 S2-49 S2-50]`, async () => {
    const { effects, over } = guarded();
    const { gate } = openGate({ ...over, ...(checkpoint === undefined ? {} : { checkpoint }) });
    const session = gate.sessions.open({ agent: AGENT });
    expect((await session.call(pay(5))).answer).toBe(paid === 1 ? "done" : "denied");
    expect(effects).toHaveLength(paid);
    expect(await gate.interactions.list()).toEqual([]);
  });
}

test("a handler that is silent has refused [I-38]", async () => {
  const { effects, over } = guarded();
  const timers = manualTimers(manualClock(0));
  const checkpoint = () => new Promise<never>(() => {});
  const { gate } = openGate({ ...over, timers, checkpoint });
  const calling = gate.sessions.open({ agent: AGENT }).call(pay(5));
  await timers.advance(61_000);
  expect((await calling).answer).toBe("denied");
  expect(effects).toEqual([]);
});

onStores("checkpoints from the inbox", (open) => {
  test("the answer outlives the process that asked, and the call is executed once [I-40]", async () => {
    const { effects, over } = guarded();
    const world = await open({ ...over, checkpoint: "inbox" });
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(pay(5)));
    expect(await onlyOpen(world.gate)).toMatchObject({ id, type: "confirm", status: "open" });
    const later = await world.restart();
    const { answers: given } = await yes(later, id);
    expect(answers(given)).toEqual(["done"]);
    expect(await codeOf(yes(later, id))).toBe("already_answered");
    // The agent, connected again somewhere else, learns what became of it and starts nothing.
    const last = await world.restart();
    const again = last.sessions.open({ id: "s-1", agent: AGENT });
    expect(await again.call(pay(5))).toMatchObject({ answer: "done", text: "paid" });
    expect(effects).toEqual(["5"]);
  });

  test("refused from the inbox: never executed, and the agent is told by whom and why [I-40]", async () => {
    const { effects, over } = guarded();
    const world = await open({ ...over, checkpoint: "inbox" });
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(pay(5)));
    const later = await world.restart();
    await no(later, id, PERSON, "wrong account");
    const told = await later.sessions.open({ id: "s-1", agent: AGENT }).call(pay(5));
    expect(told.answer).toBe("denied");
    expect(told.text).toContain(PERSON);
    expect(told.text).toContain("wrong account");
    expect(effects).toEqual([]);
  });

  test("nobody answers: silence is a no, also to a late yes [I-40]", async () => {
    const { effects, over } = guarded();
    const world = await open({ ...over, checkpoint: "inbox", approvalMs: HOUR });
    const session = world.gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(pay(5)));
    world.clock.advance(HOUR + 1);
    const later = await world.restart();
    expect(await codeOf(yes(later, id))).toBe("approval_void");
    expect((await later.interactions.sweep()).expired).toEqual([id]);
    expect(await codeOf(yes(later, id))).toBe("already_answered");
    expect((await later.decisions.get(id)).state).toBe("rejected_ml");
    expect((await session.call(pay(5))).answer).toBe("denied");
    expect(effects).toEqual([]);
  });

  test("a confirmation refers to a staged record; yes executes and reports, in one go [I-81]", async () => {
    const { gate, effects } = await open();
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    const id = decisionIdOf(await session.call(set("a", 1)));
    expect(await onlyOpen(gate)).toMatchObject({ id, decisionId: id });
    expect(await gate.decisions.get(id)).toMatchObject({ state: "pending_ml", sessionId: "s-1" });
    expect(effects).toEqual([]);
    await yes(gate, id);
    const { state, executionProof } = await gate.decisions.get(id);
    expect(state).toBe("executed");
    expect(executionProof).toMatchObject({ steps: 1 });
    expect(effects).toHaveLength(1);
  });

  test("no ending without a yes leaves the record approved and unattended [I-81]", async () => {
    const endings = {
      rejected: (id: string) => no(gate, id),
      canceled: (id: string) => gate.interactions.cancel(id, { by: PERSON, reason: "not needed" }),
      expired: async () => {
        clock.advance(HOUR + 1);
        await gate.interactions.sweep();
      },
    } as const;
    const { gate, clock, effects } = await open({ approvalMs: HOUR });
    const session = gate.sessions.open({ id: "s-1", agent: AGENT });
    for (const [outcome, end] of Object.entries(endings)) {
      const id = decisionIdOf(await session.call(set("a", 1)));
      await end(id);
      expect(await gate.interactions.get(id)).toMatchObject({ outcome });
      expect((await gate.decisions.get(id)).state, outcome).toBe("rejected_ml");
    }
    clock.advance(HOUR);
    const states = (await gate.decisions.listBySession("s-1")).map(({ state }) => state);
    expect(new Set(states)).toEqual(new Set(["rejected_ml"]));
    expect(await gate.recover()).toEqual({
      operations: [],
      decisions: [],
      proposals: [],
      left: [],
    });
    expect(effects).toEqual([]);
  });
});
