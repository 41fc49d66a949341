// A tool that wants reverse thinking runs only with a counter-check, which people see and the trail keeps.

import { expect, test } from "vitest";
import type { GateOptions } from "../../src/gate/options.ts";
import { DELIVERABLE_KEY } from "../../src/policy/reverse-thinking.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { AGENT, approve, decisionIdOf, openGate, request, rules } from "../support/port-world.ts";

const GOOD = {
  step: "before the payment",
  hiddenAssumptions: ["The invoice is open."],
  failureScenarios: ["It was paid yesterday."],
  verdict: "A_holds",
  reason: "The ledger shows no payment.",
};
const ALLOWED = rules({ id: "a", effect: "allow", tool: "bank.pay", reason: "r" });

function bank(over: Partial<GateOptions> = {}) {
  const paid: unknown[] = [];
  const pay = defineTool({
    name: "bank.pay",
    description: "Pays.",
    input: {
      type: "object",
      properties: { cents: { type: "integer" } },
      required: ["cents"],
      additionalProperties: false,
    },
    safety: { effect: "external", reversible: false, reverseThinking: true },
    execute({ input }) {
      paid.push(input);
      return "paid";
    },
  });
  const world = openGate({ tools: [pay], ...over });
  return { ...world, paid, session: world.gate.sessions.open({ id: "s", agent: AGENT }) };
}
const payment = (check?: unknown, callId = "c-1") =>
  request(
    "bank.pay",
    { cents: 5, ...(check === undefined ? {} : { _reverse_thinking: check as never }) },
    callId,
  );

test("without a counter-check a flagged tool is denied, and the answer says what to supply [S2-51 I-44 I-45]", async () => {
  const { session, paid } = bank({ policy: ALLOWED });
  const answer = await session.call(payment());
  expect(answer).toMatchObject({ answer: "denied" });
  for (const word of ["_reverse_thinking", "hiddenAssumptions", "failureScenarios", "B_wins"]) {
    expect(answer.text).toContain(word);
  }
  const [tool] = await session.tools();
  expect(tool?.inputSchema["required"]).toEqual(["cents", "_reverse_thinking"]);
  expect(tool?.description).toContain("_reverse_thinking");
  expect(paid).toEqual([]);
});

test.each([
  ["is unreadable", { ...GOOD, verdict: "sure" }, "verdict must be one of"],
  ["names no failure", { ...GOOD, failureScenarios: [] }, "failureScenarios"],
  ["finds another way better", { ...GOOD, verdict: "B_wins" }, "another way to be better"],
])("a counter-check that %s stops the call [I-41 I-45]", async (_, check, why) => {
  const { session, paid } = bank({ policy: ALLOWED });
  const answer = await session.call(payment(check));
  expect(answer).toMatchObject({ answer: "denied", text: expect.stringContaining(why) });
  expect(paid).toEqual([]);
});

test("a counter-check that depends on something leads to a person although a rule allows the call [I-41]", async () => {
  const { session } = bank({ policy: ALLOWED });
  const answer = await session.call(payment({ ...GOOD, verdict: "depends_on_X" }));
  expect(answer.answer).toBe("pending");
});

test("the counter-check is stored with the decision, shown to the reviewer under the hash, and in the trail [S2-51 I-42]", async () => {
  const { gate, session, paid } = bank();
  const id = decisionIdOf(await session.call(payment(JSON.stringify(GOOD))));
  expect((await gate.decisions.get(id)).metadata[DELIVERABLE_KEY]).toEqual(GOOD);
  const shown = await gate.interactions.shown(id);
  expect(shown?.preview.deliverables).toEqual([GOOD]);
  expect(await approve(gate, id)).toMatchObject([{ answer: "done" }]);
  expect(paid, "the tool never sees the reserved key").toEqual([{ cents: 5 }]);
  const trail = await gate.audit.read({ after: 0, limit: 1_000 });
  const previewed = trail.find(({ type }) => type === "decision.previewed");
  expect(previewed?.data).toContain("It was paid yesterday.");
});

test("counter-checks can be replayed from the trail, also of calls that no person was asked about [I-43]", async () => {
  const { gate, session, paid } = bank({ policy: ALLOWED });
  expect(await session.call(payment(GOOD))).toMatchObject({ answer: "done" });
  expect(paid).toHaveLength(1);
  const events = await gate.counterfactuals();
  expect(events).toMatchObject([
    { kind: "counterfactual", callId: "c-1", sessionId: "s", tool: "bank.pay", ...GOOD },
  ]);
  expect(await gate.counterfactuals(events[0]?.seq)).toEqual([]);
});

test("a handler argues in the agent's place; one that fails or is silent means no [I-44 I-45]", async () => {
  const asked: unknown[] = [];
  const handler = (seen: unknown) => {
    asked.push(seen);
    return GOOD;
  };
  const able = bank({ policy: ALLOWED, reverseThinking: { handler } });
  expect(await able.session.call(payment())).toMatchObject({ answer: "done" });
  expect(asked).toMatchObject([{ tool: "bank.pay", input: { cents: 5 }, sessionId: "s" }]);
  const broken = bank({
    policy: ALLOWED,
    reverseThinking: { handler: () => Promise.reject(new Error("model is down")) },
  });
  expect(await broken.session.call(payment())).toMatchObject({
    answer: "denied",
    text: expect.stringContaining("model is down"),
  });
  const silent = bank({
    policy: ALLOWED,
    hookTimeoutMs: 20,
    reverseThinking: { handler: () => new Promise<never>(() => {}) },
  });
  expect(await silent.session.call(payment())).toMatchObject({ answer: "denied" });
  expect([...broken.paid, ...silent.paid]).toEqual([]);
});

test("only a host that says so in words lets a call go on without a counter-check, and that is recorded [I-45]", async () => {
  const lenient = bank({ policy: ALLOWED, reverseThinking: { whenMissing: "proceed" } });
  expect(await lenient.session.call(payment())).toMatchObject({ answer: "done" });
  const trail = await lenient.gate.audit.read({ after: 0, limit: 1_000 });
  const said = trail.filter(({ type }) => type === "gate.evaluated");
  expect(said.map(({ data }) => data).join()).toContain("continues without one");
});

test("a keyed call is the same call with and without its counter-check [S2-51]", async () => {
  const { session, paid } = bank({ policy: ALLOWED });
  const keyed = { ...payment(GOOD), key: "k" };
  expect(await session.call(keyed)).toMatchObject({ answer: "done" });
  expect(await session.call({ ...payment(), key: "k" })).toMatchObject({ answer: "done" });
  expect(paid).toHaveLength(1);
});

test("without the flag nothing is asked for, whatever handler and hooks are there [S2-52]", async () => {
  const asked: unknown[] = [];
  const plain = defineTool({
    name: "bank.look",
    description: "Looks.",
    input: { type: "object", additionalProperties: true },
    execute: ({ input }) => JSON.stringify(input),
  });
  const { gate } = openGate({
    tools: [plain],
    policy: rules({ id: "a", effect: "allow", tool: "bank.look", reason: "r" }),
    reverseThinking: { handler: (seen) => void asked.push(seen) as never },
    hooks: [{ name: "h", points: ["before_tool"], handle: () => ({ answer: "allow" }) }],
  });
  const session = gate.sessions.open({ agent: AGENT });
  const answer = await session.call(request("bank.look", { _reverse_thinking: "unread" }));
  expect(answer).toMatchObject({ answer: "done", text: '{"_reverse_thinking":"unread"}' });
  expect(asked).toEqual([]);
  expect(await gate.counterfactuals()).toEqual([]);
});

test.each([
  [{ checkpoint: true, reverseThinking: true }, true, true],
  [{ checkpoint: true }, true, false],
  [{ reverseThinking: true }, false, true],
  [{}, false, false],
])(
  "checkpoint and reverse thinking are asked for each by its own flag: %j [S2-53 S2-54]",
  async (flags, person, itself) => {
    const asked = { person: 0, itself: 0 };
    const ran: string[] = [];
    const pay = defineTool({
      name: "bank.pay",
      description: "Pays.",
      input: { type: "object" },
      safety: { effect: "external", ...flags },
      execute: () => {
        ran.push("paid");
        return "paid";
      },
    });
    const open = (go: boolean, verdict: string) => {
      const { gate } = openGate({
        tools: [pay],
        policy: ALLOWED,
        checkpoint: () => {
          asked.person += 1;
          return go ? { answer: "go" } : { answer: "refuse", reason: "not now" };
        },
        reverseThinking: {
          handler: () => {
            asked.itself += 1;
            return { ...GOOD, verdict } as never;
          },
        },
      });
      return gate.sessions.open({ agent: AGENT }).call(request("bank.pay", {}));
    };
    expect((await open(true, "A_holds")).answer).toBe("done");
    expect(asked).toEqual({ person: Number(person), itself: Number(itself) });
    expect((await open(false, "A_holds")).answer).toBe(person ? "denied" : "done");
    expect((await open(true, "B_wins")).answer).toBe(itself ? "denied" : "done");
  },
);
