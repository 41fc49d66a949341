// Lost calls and lost undos that a person settles: what can be undone afterwards, and who may say it.

import { expect, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import { allowAlways } from "../../src/gate/review.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { sampleVerdictValidator } from "../support/validators.ts";

const BY = "person:ada";
const AGENT = "agent:x";

/** A bank that loses the answers of these tools, after it did what they asked for. */
function createBank(losesAnswersOf: "bank.pay" | "bank.cancel") {
  const payments = new Map<string, "paid" | "cancelled">();
  const answer = (tool: string, text: string) => {
    if (tool === losesAnswersOf) throw new TypeError("fetch failed: socket hang up");
    return { text, isError: false, data: { payment: "p-1" } };
  };
  const pay = defineTool({
    name: "bank.pay",
    description: "Pays.",
    input: { type: "object" },
    safety: { effect: "external", reversible: true },
    execute() {
      payments.set("p-1", "paid");
      return answer("bank.pay", "paid");
    },
    undo: ({ output }) => ({
      tool: "bank.cancel",
      input: { payment: String((output as { payment: string }).payment) },
    }),
  });
  const cancel = defineTool({
    name: "bank.cancel",
    description: "Cancels a payment.",
    input: { type: "object" },
    safety: { effect: "external" },
    execute({ input }) {
      payments.set(String((input as { payment: string }).payment), "cancelled");
      return answer("bank.cancel", "cancelled");
    },
  });
  const gate = createGate({
    store: memoryStore(),
    tenant: "acme",
    tools: [pay, cancel],
    validators: { tech: sampleVerdictValidator("t"), business: sampleVerdictValidator("b") },
    guard: allowAlways,
    policy: {
      version: "1",
      rules: [{ id: "all", effect: "allow", tool: "bank.*", reason: "test" }],
    },
  });
  const session = gate.sessions.open({ id: "s", agent: AGENT });
  const question = async () => {
    const [open] = await gate.interactions.list();
    if (open?.type !== "connection_lost") throw new Error("no lost call is asked about");
    return { id: open.id, hash: open.hash };
  };
  return { gate, session, payments, question };
}

const PAY = { callId: "c", tool: "bank.pay", input: {} };

test("a call settled as happened can be undone when the person gives what its tool makes the undo from [D10]", async () => {
  const { gate, session, payments, question } = createBank("bank.pay");
  expect((await session.call(PAY)).answer).toBe("unknown");
  const { id, hash } = await question();
  const settled = await gate.interactions.settle(id, {
    ...{ hash, by: BY, happened: true },
    output: "the bank's page shows p-1",
    resultData: { payment: "p-1" },
  });
  expect(settled).toMatchObject({
    answer: "done",
    undo: { tool: "bank.cancel", input: { payment: "p-1" } },
  });
  const report = await session.rollback(BY);
  expect(report.undone).toHaveLength(1);
  expect(payments.get("p-1")).toBe("cancelled");
});

test("a call settled as happened without that data is done and has no undo [D10]", async () => {
  const { gate, session, question } = createBank("bank.pay");
  await session.call(PAY);
  const { id, hash } = await question();
  const settled = await gate.interactions.settle(id, { hash, by: BY, happened: true });
  expect(settled).toMatchObject({ answer: "done" });
  expect(settled).not.toHaveProperty("undo");
  expect((await session.rollback(BY)).irreversible).toHaveLength(1);
});

test("data from which no undo can be made is refused, and the question stays open [D10]", async () => {
  const { gate, session, question } = createBank("bank.pay");
  await session.call(PAY);
  const { id, hash } = await question();
  const given = { hash, by: BY, happened: true, resultData: null } as const;
  await expect(gate.interactions.settle(id, given)).rejects.toMatchObject({
    code: "invalid_input",
    message: expect.stringContaining("Leave it out"),
  });
  expect(await question()).toEqual({ id, hash });
});

test("the person who asked for a rollback may say what became of its lost undo; the agent may not [D10]", async () => {
  const { gate, session, payments, question } = createBank("bank.cancel");
  expect((await session.call(PAY)).answer).toBe("done");
  expect((await session.rollback(BY)).unfinished).toHaveLength(1);
  const { id, hash } = await question();
  const happened = { hash, happened: true } as const;
  await expect(gate.interactions.settle(id, { ...happened, by: AGENT })).rejects.toMatchObject({
    code: "not_allowed",
  });
  expect((await gate.interactions.settle(id, { ...happened, by: BY })).answer).toBe("done");
  expect((await session.rollback(BY)).skipped).not.toHaveLength(0);
  expect(payments.get("p-1")).toBe("cancelled");
  const operations = await gate.operations.listBySession("s");
  expect(operations.find(({ tool }) => tool === "bank.pay")?.status).toBe("rolled_back");
});

test("a lost undo that is repeated and lost again is asked about again, and the same person may answer [D10]", async () => {
  const { gate, session, question } = createBank("bank.cancel");
  await session.call(PAY);
  await session.rollback(BY);
  const first = await question();
  const repeat = { hash: first.hash, by: BY, happened: false, otherwise: "repeat" } as const;
  expect((await gate.interactions.settle(first.id, repeat)).answer).toBe("unknown");
  const second = await question();
  expect(second.id).not.toBe(first.id);
  const agent = { hash: second.hash, by: AGENT, happened: true } as const;
  await expect(gate.interactions.settle(second.id, agent)).rejects.toMatchObject({
    code: "not_allowed",
  });
  const { hash } = second;
  const settled = await gate.interactions.settle(second.id, { hash, by: BY, happened: true });
  expect(settled.answer).toBe("done");
});
