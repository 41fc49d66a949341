// The breaker of a gate: after failures in a row a tool is not called any more, in any process, until a person closes it.

import { expect, test } from "vitest";
import { validatedTool } from "../../src/gate/validators/index.ts";
import { createGate, type GateOptions, type Validator } from "../../src/index.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";

const ADA = "person:ada";

/** A tool that does what `behaviour` says, one that works, and one that only reads and always fails. */
function createShop(options: Partial<GateOptions> = {}) {
  const shop = { behaviour: "works" as "works" | "fails" | "throws", effects: 0, undone: 0 };
  const input = { type: "object" } as const;
  const sell = defineTool({
    name: "shop.sell",
    description: "Sells.",
    input,
    safety: { effect: "external", reversible: true },
    execute() {
      shop.effects += 1;
      if (shop.behaviour === "throws") throw new Error("line dead");
      if (shop.behaviour === "fails") return { text: "sold out", isError: true };
      return "sold";
    },
    undo: () => ({ tool: "shop.refund", input: {} }),
  });
  const refund = defineTool({
    name: "shop.refund",
    description: "Gives the money back.",
    input,
    safety: { effect: "external" },
    execute() {
      shop.undone += 1;
      return "refunded";
    },
  });
  const look = defineTool({
    name: "shop.look",
    description: "Looks.",
    input,
    safety: { effect: "read" },
    permissionClass: "readonly",
    execute: () => ({ text: "closed", isError: true }),
  });
  const store = options.store ?? memoryStore();
  const open = (more: Partial<GateOptions> = {}) =>
    createGate({
      store,
      tools: [sell, refund, look],
      policy: {
        version: "1",
        rules: [{ id: "shop", effect: "allow", tool: "shop.*", reason: "test" }],
      },
      breaker: { threshold: 2 },
      people: [{ id: ADA }],
      ...options,
      ...more,
    });
  const gate = open();
  const session = gate.sessions.open({ id: "s", agent: "agent:x" });
  let count = 0;
  const call = (tool = "shop.sell", by = session) => {
    count += 1;
    return by.call({ callId: `c${count}`, tool, input: {} });
  };
  return { shop, gate, session, call, open, store, sell };
}

const OPEN = {
  answer: "denied",
  text: expect.stringContaining("circuit_open"),
  findings: [{ severity: "hard-deny", policy: "breaker" }],
};

test.each(["fails", "throws"] as const)(
  "a tool that %s twice in a row is not called any more, in any process, until a person closes it [I-09 I-10]",
  async (behaviour) => {
    const { shop, gate, call, open } = createShop();
    shop.behaviour = behaviour;
    await call();
    await call();
    expect(await call()).toMatchObject(OPEN);
    expect(shop.effects, "the third call reached nothing").toBe(2);
    expect(await gate.breakers.list()).toMatchObject([
      { id: "shop.sell", state: "open", failures: 2, closedBy: "" },
    ]);

    const other = open();
    const elsewhere = other.sessions.open({ agent: "agent:y" });
    expect(await call("shop.sell", elsewhere), "another process").toMatchObject(OPEN);
    expect(await call("shop.refund"), "another tool").toMatchObject({ answer: "done" });

    const reason = "the shop is back";
    await expect(gate.breakers.close("shop.sell", { by: "agent:x", reason })).rejects.toMatchObject(
      { code: "not_allowed" },
    );
    expect(await gate.breakers.close("shop.sell", { by: ADA, reason })).toMatchObject({
      state: "closed",
      failures: 0,
      closedBy: ADA,
    });
    shop.behaviour = "works";
    expect(await call()).toMatchObject({ answer: "done" });
    await expect(gate.breakers.close("shop.sell", { by: ADA, reason })).rejects.toMatchObject({
      code: "illegal_transition",
    });
    const entries = await gate.audit.entries({ after: 0, limit: 100 });
    const told = entries.filter(({ type }) => type.startsWith("breaker."));
    expect(told.map(({ type, actor }) => [type, actor])).toEqual([
      ["breaker.counted", "agent:x"],
      ["breaker.opened", "agent:x"],
      ["breaker.closed", ADA],
    ]);
  },
);

test("a success in between begins a new row of failures, and reads do not count [I-09]", async () => {
  const { shop, gate, call } = createShop();
  shop.behaviour = "fails";
  await call();
  shop.behaviour = "works";
  await call();
  shop.behaviour = "fails";
  await call();
  for (let count = 0; count < 4; count += 1) await call("shop.look");
  expect(await gate.breakers.list()).toMatchObject([{ id: "shop.sell", state: "closed" }]);
  await call();
  expect((await gate.breakers.list())[0]).toMatchObject({ state: "open" });
});

test("reviews that refuse calls open the breaker too, before a person is asked about the next one [I-03 I-09]", async () => {
  let asked = 0;
  const no: Validator = {
    name: "limits",
    review() {
      asked += 1;
      return {
        approved: false,
        score: 0,
        severity: "block",
        reason: "too much",
        validator: "limits",
        policyVersion: "1",
      };
    },
  };
  const { gate, call } = createShop({
    policy: { version: "1", rules: [] },
    validators: { business: no },
  });
  expect(await call()).toMatchObject({
    answer: "denied",
    text: expect.stringContaining("too much"),
  });
  await call();
  expect(await call()).toMatchObject(OPEN);
  expect(asked).toBe(2);
  expect(await gate.breakers.list()).toMatchObject([{ reason: "too much" }]);
});

test("what was approved is not executed while the breaker is open, and undos still are [I-10]", async () => {
  const { shop, gate, session, call } = createShop({
    policy: {
      version: "1",
      rules: [
        {
          id: "ask",
          effect: "ask",
          tool: "shop.sell",
          reason: "test",
          input: [{ at: "$.ask", equals: true }],
        },
        { id: "shop", effect: "allow", tool: "shop.*", reason: "test" },
      ],
    },
  });
  expect(await call()).toMatchObject({ answer: "done" });
  const waiting = await session.call({ callId: "w", tool: "shop.sell", input: { ask: true } });
  if (waiting.answer !== "pending") throw new Error(waiting.text);
  shop.behaviour = "fails";
  await call();
  await call();
  const before = shop.effects;
  const { hash } = await gate.interactions.get(waiting.interactionId);
  const { outcome, answers } = await gate.interactions.approve(waiting.interactionId, {
    hash,
    by: ADA,
  });
  expect(outcome).toBe("failed");
  expect(answers[0]?.text).toContain("circuit_open");
  expect(shop.effects).toBe(before);
  expect((await session.rollback(ADA)).undone).toHaveLength(1);
  expect(shop.undone).toBe(1);
});

test("a breaker that opens between the judgement and the intent stops the call [I-10]", async () => {
  const store = memoryStore();
  const { breakers } = store.tenant("default");
  const { shop, gate, call } = createShop({
    store,
    hooks: [
      {
        name: "slow",
        points: ["before_tool"],
        async handle() {
          const failure = { reason: "x", sessionId: "s", actor: "agent:z", threshold: 2 };
          await breakers.failed("shop.sell", failure);
          await breakers.failed("shop.sell", failure);
          return { answer: "allow" };
        },
      },
    ],
  });
  const answer = await call();
  expect(answer).toMatchObject({ answer: "failed", text: expect.stringContaining("circuit_open") });
  expect(shop.effects).toBe(0);
  expect(await gate.breakers.list()).toMatchObject([{ state: "open" }]);
});

test("blocks of a validated tool count as failures, and each of its effects is undone [I-03 I-07 I-09]", async () => {
  const blocked: string[] = [];
  const { shop, sell, open, call } = createShop();
  const reviewed = validatedTool({
    tool: sell,
    validator: {
      name: "words",
      review: () => ({
        approved: false,
        score: 0,
        severity: "block",
        reason: "bad word",
        validator: "words",
        policyVersion: "1",
      }),
    },
    toDiff: (_, { text }) => ({
      sourceTool: "shop.sell",
      raw: new TextEncoder().encode(text),
      metadata: {},
    }),
    sink: ({ reason }) => void blocked.push(reason),
  });
  const refund = open().tools.get("shop.refund");
  if (refund === undefined) throw new Error("no refund");
  const gate = open({ tools: [reviewed, refund] });
  const session = gate.sessions.open({ id: "t", agent: "agent:x" });
  for (let count = 0; count < 2; count += 1) {
    expect(await call("shop.sell", session)).toMatchObject({
      answer: "failed",
      text: expect.stringMatching(/Blocked by validator "words".*bad word[\s\S]*Undone/),
    });
  }
  expect(await call("shop.sell", session)).toMatchObject(OPEN);
  expect(shop).toMatchObject({ effects: 2, undone: 2 });
  expect(blocked).toEqual(["bad word", "bad word"]);
});

test("a breaker needs a whole number of failures, and without the option no tool is stopped", async () => {
  for (const threshold of [0, -1, 1.5, Number.NaN]) {
    expect(() => createShop({ breaker: { threshold } })).toThrow(/at least 1/);
  }
  const { shop, call, open } = createShop();
  const free = open({ breaker: undefined as never }).sessions.open({ agent: "agent:x" });
  shop.behaviour = "fails";
  for (let count = 0; count < 4; count += 1) {
    expect(await call("shop.sell", free)).toMatchObject({ answer: "failed", text: "sold out" });
  }
});
