import { expect, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import type { GateOptions } from "../../src/gate/options.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { rulesValidator } from "../../src/gate/validators/rules.ts";
import { NO_RULES } from "../../src/policy/policy.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

/** A small production: amounts by account, with everything that reaches it on record. */
function bank() {
  const accounts = new Map<string, number>([["a", 100]]);
  const effects: string[] = [];
  const account = { type: "string" } as const;
  const set = defineTool({
    name: "bank.set",
    description: "Sets the balance of an account.",
    input: {
      type: "object",
      properties: { account, amount: { type: "integer" } },
      required: ["account", "amount"],
      additionalProperties: false,
    },
    safety: { effect: "external", reversible: true },
    dryRun: ({ input }) => {
      const { account, amount } = input as { account: string; amount: number };
      return `${account}: ${accounts.get(account) ?? "none"} -> ${amount}`;
    },
    stateVersion: async ({ input }) => {
      const { account } = input as { account: string };
      return String(accounts.get(account) ?? "none");
    },
    async execute({ input }) {
      const { account, amount } = input as { account: string; amount: number };
      if (amount < 0) return { text: "the bank does not lend", isError: true };
      const before = accounts.get(account) ?? 0;
      accounts.set(account, amount);
      effects.push(`${account}=${amount}`);
      return { text: "set", data: { account, before } };
    },
    undo: ({ output }) => {
      const { account, before } = output as { account: string; before: number };
      return { tool: "bank.set", input: { account, amount: before } };
    },
  });
  const look = defineTool({
    name: "bank.look",
    description: "Shows a balance.",
    input: {
      type: "object",
      properties: { account },
      required: ["account"],
      additionalProperties: false,
    },
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    execute: ({ input }) => String(accounts.get((input as { account: string }).account)),
  });
  return { accounts, effects, set, look };
}

function setup(over: Partial<GateOptions> = {}) {
  const production = bank();
  const store = memoryStore();
  const gate = createGate({
    store,
    tenant: "acme",
    tools: [production.set, production.look],
    validators: {
      tech: sampleVerdictValidator("schema"),
      business: sampleVerdictValidator("limits"),
    },
    guard: allowAlways,
    policy: NO_RULES,
    ...over,
  });
  const session = gate.sessions.open({ id: "s-1", agent: "agent:one" });
  return { ...production, store, gate, session };
}

const allowAll = {
  version: "1",
  rules: [{ id: "all", effect: "allow", tool: "bank.*", reason: "a test" }],
} as const;

const call = (tool: string, input: Record<string, string | number>, callId = "c-1") => ({
  callId,
  tool,
  input,
  messageId: "m-1",
});
const set = (amount: number, account = "a") => call("bank.set", { account, amount });

test("a read-only call is done at once, as an operation with its entries", async () => {
  const { session, gate } = setup();
  expect(await session.call(call("bank.look", { account: "a" }))).toMatchObject({
    answer: "done",
    text: "100",
  });
  const types = (await gate.audit.read({ after: 0, limit: 9 })).map(({ type }) => type);
  expect(types).toEqual(["operation.started", "operation.succeeded"]);
});

test("what needs a person is pending, and nothing happens until somebody has seen and approved it [R2]", async () => {
  const { session, gate, effects } = setup();
  const answer = await session.call(set(5));
  expect(answer.answer).toBe("pending");
  expect(effects).toEqual([]);
  if (answer.answer !== "pending") return;
  const shown = await gate.interactions.shown(answer.decisionId);
  expect(shown?.preview.dryRun).toEqual([
    { impact: {}, preview: "a: 100 -> 5", summary: "a: 100 -> 5" },
  ]);
  const { answers } = await gate.interactions.approve(answer.decisionId, {
    hash: shown?.hash ?? "",
    by: "person:ada",
  });
  expect(answers).toMatchObject([{ answer: "done", text: "set" }]);
  expect(effects).toEqual(["a=5"]);
  expect((await gate.decisions.get(answer.decisionId)).state).toBe("executed");
});

test("a second approval, one of another hash, and one by the agent itself change nothing [T7]", async () => {
  const { session, gate, effects } = setup();
  const answer = await session.call(set(5));
  if (answer.answer !== "pending") throw new Error("expected a question");
  const { decisionId: id } = answer;
  const hash = (await gate.interactions.shown(id))?.hash ?? "";
  const approve = (by: string, seen = hash) => gate.interactions.approve(id, { hash: seen, by });
  await expect(approve("agent:one")).rejects.toMatchObject({ code: "not_allowed" });
  await expect(approve("person:ada", "0".repeat(64))).rejects.toMatchObject({
    code: "approval_void",
  });
  const both = await Promise.allSettled([approve("person:ada"), approve("person:bob")]);
  expect(both.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect(effects).toEqual(["a=5"]);
});

test("a world that changed since it was shown is not touched, and goes back to review with the difference [T4]", async () => {
  const { session, gate, effects, accounts } = setup();
  const answer = await session.call(set(5));
  if (answer.answer !== "pending") throw new Error("expected a question");
  accounts.set("a", 70);
  const hash = (await gate.interactions.shown(answer.decisionId))?.hash ?? "";
  const yes = { hash, by: "person:ada" };
  const [result] = (await gate.interactions.approve(answer.decisionId, yes)).answers;
  expect(result).toMatchObject({ answer: "pending" });
  expect(result?.text).toContain("70 -> 5");
  expect(effects).toEqual([]);
  expect((await gate.decisions.get(answer.decisionId)).state).toBe("failed");
});

test("a bundle that fails half way is compensated in reverse, and the decision tells it", async () => {
  const { session, gate, effects, accounts } = setup();
  accounts.set("b", 1);
  const staged = await session.stage([set(5), set(6, "b"), set(-1)]);
  if (staged.answer !== "pending") throw new Error("expected a question");
  const hash = (await gate.interactions.shown(staged.decisionId))?.hash ?? "";
  const { answers } = await gate.interactions.approve(staged.decisionId, {
    hash,
    by: "person:ada",
  });
  expect(answers.map(({ answer }) => answer)).toEqual(["failed", "failed", "failed"]);
  expect(effects).toEqual(["a=5", "b=6", "b=1", "a=100"]);
  const decision = await gate.decisions.get(staged.decisionId);
  expect(decision).toMatchObject({ state: "failed" });
  expect(decision.executionError).toContain("the bank does not lend");
});

test("a session is rolled back through the same gate, a second time does nothing [I-37]", async () => {
  const { session, effects, accounts, gate } = setup({ policy: allowAll });
  for (const amount of [1, 2, 3]) await session.call({ ...set(amount), callId: `c-${amount}` });
  await session.call(call("bank.look", { account: "a" }, "c-look"));
  const report = await session.rollback("person:ada");
  expect(report.undone).toHaveLength(3);
  expect(report.irreversible).toEqual([]);
  expect(accounts.get("a")).toBe(100);
  const again = await session.rollback("person:ada");
  expect(again.undone).toEqual([]);
  expect(effects).toEqual(["a=1", "a=2", "a=3", "a=2", "a=1", "a=100"]);
  const types = (await gate.audit.read({ after: 0, limit: 99 })).map(({ type }) => type);
  expect(types.filter((type) => type === "operation.undone")).toHaveLength(3);
});

test("an agent that undoes its own calls consents to nothing: what would be asked is refused and told [T6]", async () => {
  const { session, gate, accounts } = setup();
  const answer = await session.call(set(5));
  if (answer.answer !== "pending") throw new Error("expected a question");
  const hash = (await gate.interactions.shown(answer.decisionId))?.hash ?? "";
  await gate.interactions.approve(answer.decisionId, { hash, by: "person:ada" });
  const own = await session.rollback("agent:one");
  expect(own.failed).toHaveLength(1);
  expect(accounts.get("a")).toBe(5);
  const types = (await gate.audit.read({ after: 0, limit: 99 })).map(({ type }) => type);
  expect(types.at(-1)).toBe("call.denied");
  expect((await session.rollback("person:ada")).undone).toHaveLength(1);
  expect(accounts.get("a")).toBe(100);
});

test("the folder belongs to what was approved: it runs where it was shown, under the id it was asked with [R8]", async () => {
  const seen: unknown[] = [];
  const where = defineTool({
    name: "where.am_i",
    description: "Tells where it runs.",
    input: { type: "object", properties: {}, additionalProperties: false },
    safety: { effect: "external" },
    execute: ({ workingDirectory, callId }) => {
      seen.push([workingDirectory, callId]);
      return workingDirectory;
    },
  });
  const { gate } = setup({ tools: [where] });
  const session = gate.sessions.open({ agent: "agent:one", workingDirectory: "/srv/site" });
  const answer = await session.call({ callId: "c-9", tool: "where.am_i", input: {}, turn: 3 });
  if (answer.answer !== "pending") throw new Error("expected a question");
  const hash = (await gate.interactions.shown(answer.decisionId))?.hash ?? "";
  await gate.interactions.approve(answer.decisionId, { hash, by: "person:ada" });
  expect(seen).toEqual([["/srv/site", "c-9"]]);
  const [operation] = await gate.operations.listBySession(session.id);
  expect(operation).toMatchObject({ workingDirectory: "/srv/site", callId: "c-9", turn: 3 });
});

test("what somebody changed since is not undone but reported [T9]", async () => {
  const { session, accounts } = setup({ policy: allowAll });
  await session.call(set(1));
  accounts.set("a", 42);
  const report = await session.rollback("person:ada");
  expect(report.conflicted).toHaveLength(1);
  expect(accounts.get("a")).toBe(42);
});

test("refusals are told in the trail; a denial says why and what to do [I-30]", async () => {
  const denyAll = {
    version: "1",
    rules: [{ id: "no", effect: "deny", tool: "bank.set", reason: "the books are closed" }],
  } as const;
  const { session, gate, effects } = setup({ policy: denyAll });
  const denied = await session.call(set(5));
  expect(denied.answer).toBe("denied");
  expect(denied.text).toContain("the books are closed");
  const unknown = await session.call(call("bank.burn", {}));
  expect(unknown).toMatchObject({ answer: "failed" });
  const wrong = await session.call(call("bank.set", { account: "a" }));
  expect(wrong.text).toContain("amount");
  expect(effects).toEqual([]);
  const types = (await gate.audit.read({ after: 0, limit: 9 })).map(({ type }) => type);
  expect(types).toEqual(["call.denied", "call.denied", "call.denied"]);
});

test("once stopped nothing runs, whichever way it comes [T38 I30]", async () => {
  const { session, gate, effects } = setup({ policy: allowAll });
  await gate.killSwitch.stop("wait", { actor: "person:ada" });
  expect(await session.call(set(5))).toMatchObject({ answer: "failed" });
  expect((await session.call(set(6))).text).toContain("paused by an operator");
  expect(effects).toEqual([]);
});

test("a review that says no is final, and nobody is asked", async () => {
  const no = rulesValidator({
    name: "limits",
    policyVersion: "1",
    rules: [{ name: "never", check: () => ({ severity: "block", reason: "too much" }) }],
  });
  const { session, effects, gate } = setup({
    validators: { tech: sampleVerdictValidator("schema"), business: no },
  });
  const answer = await session.call(set(5));
  expect(answer).toMatchObject({ answer: "denied" });
  expect(answer.text).toContain("too much");
  expect(effects).toEqual([]);
  const [decision] = await gate.decisions.listBySession("s-1");
  expect(decision?.state).toBe("rejected_ml");
});

test("a batch gives one result per call, order kept around writes [S2-86]", async () => {
  const { session, effects } = setup({ policy: allowAll });
  const results = [];
  const batch = [
    call("bank.look", { account: "a" }, "1"),
    { ...set(7), callId: "2" },
    call("bank.look", { account: "a" }, "3"),
  ];
  for await (const result of session.callAll(batch)) results.push(result);
  expect(results.map(({ callId, answer }) => [callId, answer.text])).toEqual([
    ["1", "100"],
    ["2", "set"],
    ["3", "7"],
  ]);
  expect(effects).toEqual(["a=7"]);
});
