// The lane `review`: allowed without a person, but both machine reviews are asked.

import { expect, test } from "vitest";
import { createGate, type GateOptions, type Rule, type Validator } from "../../src/index.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";

type Said = "yes" | "no" | "throws";

function openShop(
  rules: readonly Pick<Rule, "effect" | "tool">[],
  options: Partial<GateOptions> = {},
) {
  const shop = { sold: 0, asked: [] as string[], told: [] as string[] };
  const say: Record<string, Said> = { tech: "yes", business: "yes" };
  const validator = (name: string): Validator => ({
    name,
    review() {
      shop.asked.push(name);
      if (say[name] === "throws") throw new Error("down");
      const approved = say[name] === "yes";
      const reason = approved ? "fine" : "too much";
      const severity = approved ? "" : "block";
      return { approved, score: 0.3, reason, severity, validator: name, policyVersion: "7" };
    },
  });
  const input = { type: "object" } as const;
  const sell = defineTool({
    name: "shop.sell",
    description: "Sells.",
    input,
    safety: { effect: "external" },
    execute() {
      shop.sold += 1;
      return "sold";
    },
  });
  const look = defineTool({
    name: "shop.look",
    description: "Looks.",
    input,
    safety: { effect: "read" },
    permissionClass: "readonly",
    execute: () => "open",
  });
  const gate = createGate({
    store: memoryStore(),
    tools: [sell, look],
    validators: { tech: validator("tech"), business: validator("business") },
    policy: {
      version: "1",
      rules: rules.map((rule, place) => ({ id: `r${place}`, reason: "test", ...rule })),
    },
    hooks: [
      {
        name: "listens",
        points: ["notification"],
        handle({ id = "" }) {
          shop.told.push(id);
          return { answer: "allow" };
        },
      },
    ],
    ...options,
  });
  const session = gate.sessions.open({ id: "s", agent: "agent:x" });
  const call = (tool = "shop.sell", more = {}) =>
    session.call({ callId: "c", tool, input: {}, ...more });
  return { shop, say, gate, session, call };
}

const REVIEW = { effect: "review", tool: "shop.*" } as const;

test("both reviews are asked, in their order, and without a person the call is executed once [I-01 I-02]", async () => {
  const { shop, gate, call } = openShop([REVIEW]);
  const first = await call("shop.sell", { key: "k" });
  expect(first).toMatchObject({ answer: "done", text: "sold" });
  expect(shop).toMatchObject({ sold: 1, asked: ["tech", "business"], told: [] });
  expect(await call("shop.sell", { key: "k" })).toMatchObject({ answer: "done" });
  expect(shop.sold, "asked for again").toBe(1);
  const [decision] = await gate.decisions.list();
  expect(decision).toMatchObject({
    state: "executed",
    techVerdict: { validator: "tech", policyVersion: "7" },
    bizVerdict: { validator: "business", score: 0.3, approved: true },
    machineVerdict: { validator: "business", score: 0.3, approved: true },
  });
  expect(await gate.interactions.list()).toEqual([]);
  const shown = await gate.interactions.shown(decision?.id ?? "");
  expect(shown?.preview).toMatchObject({ lane: "review", machine: { score: 0.3 } });
  const entries = await gate.audit.entries({ after: 0, limit: 100 });
  expect(entries.map(({ type }) => type)).toEqual(
    expect.arrayContaining(["decision.staged", "decision.reviewed", "operation.started"]),
  );
});

test.each([
  ["tech", "no", "rejected_tech"],
  ["tech", "throws", "rejected_tech"],
  ["business", "no", "rejected_ml"],
  ["business", "throws", "rejected_ml"],
] as const)("a %s review that says %s ends it, and nothing runs", async (tier, said, state) => {
  const { shop, say, gate, call } = openShop([REVIEW]);
  say[tier] = said;
  expect(await call()).toMatchObject({
    answer: "denied",
    text: expect.stringContaining(said === "no" ? "too much" : "down"),
  });
  expect(shop.sold).toBe(0);
  expect((await gate.decisions.list()).map((one) => one.state)).toEqual([state]);
  expect(await gate.interactions.list()).toEqual([]);
});

test("the guard is asked before the reviews alone approve anything", async () => {
  const targets: string[] = [];
  const guard = {
    allows(_: unknown, target: string) {
      targets.push(target);
      return target !== "approved";
    },
  };
  const { shop, call } = openShop([REVIEW], { guard });
  expect(await call()).toMatchObject({ answer: "pending" });
  expect(targets).toEqual(["pending_ml", "approved"]);
  expect(shop.sold).toBe(0);
});

test("the strictest of several rules counts: ask over review, review over allow [I-19]", async () => {
  const asks = openShop([REVIEW, { effect: "ask", tool: "shop.sell" }]);
  expect(await asks.call()).toMatchObject({ answer: "pending" });
  expect(asks.shop.sold).toBe(0);
  for (const rules of [[REVIEW, { effect: "allow", tool: "shop.*" }] as const]) {
    for (const order of [rules, rules.toReversed()]) {
      const { shop, say, call } = openShop(order);
      say["business"] = "no";
      expect(await call()).toMatchObject({ answer: "denied" });
      expect(shop.asked).toEqual(["tech", "business"]);
    }
  }
  const allowed = openShop([{ effect: "allow", tool: "shop.*" }]);
  expect(await allowed.call()).toMatchObject({ answer: "done" });
  expect(allowed.shop.asked, "allow is the fast lane").toEqual([]);
});

test("a tool that only reads is reviewed too where a rule says so", async () => {
  const { shop, say, call } = openShop([REVIEW]);
  expect(await call("shop.look")).toMatchObject({ answer: "done" });
  expect(shop.asked).toEqual(["tech", "business"]);
  say["tech"] = "no";
  expect(await call("shop.look", { callId: "d" })).toMatchObject({ answer: "denied" });
});

test("a hook that wants a person by the time it runs stops what the reviews alone approved", async () => {
  let asked = 0;
  const { shop, gate, call } = openShop([REVIEW], {
    hooks: [
      {
        name: "later",
        points: ["before_tool"],
        handle() {
          asked += 1;
          return asked === 1 ? { answer: "allow" } : { answer: "ask", message: "Wait." };
        },
      },
    ],
  });
  expect(await call()).toMatchObject({
    answer: "failed",
    text: expect.stringContaining("a person has to be asked"),
  });
  expect(shop.sold).toBe(0);
  expect((await gate.decisions.list())[0]).toMatchObject({ state: "failed" });
});

test("a process that ends between the reviews and their yes runs nothing, and recovery asks a person or nobody", async () => {
  const store = memoryStore();
  const { shop, gate, call } = openShop([REVIEW], {
    store: {
      ...store,
      tenant: (name) => {
        const tenant = store.tenant(name);
        const approve = async () => {
          throw new Error("cut off");
        };
        return { ...tenant, interactions: { ...tenant.interactions, approve } };
      },
    },
  });
  await expect(call()).rejects.toThrow("cut off");
  await gate.recover();
  expect(shop.sold).toBe(0);
  expect((await gate.decisions.list())[0]).toMatchObject({ state: "pending_ml" });
});

test("a rule for all tools must write out what it lets through, also with a review", () => {
  expect(() => openShop([{ effect: "review", tool: "*" }])).toThrow(/every call of every tool/);
});
