// What an agent may call off: its own questions, and never a call whose outcome is not known.

import { expect, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";

const POLICY = {
  version: "1",
  rules: [{ id: "pay", effect: "allow", tool: "bank.pay", reason: "a test" }],
} as const;

const pay = defineTool({
  name: "bank.pay",
  description: "Pays.",
  input: { type: "object" },
  safety: { effect: "external" },
  execute: () => {
    throw new Error("connection reset");
  },
});

test("calling off a session leaves calls whose outcome is not known to people [B4]", async () => {
  const gate = createGate({ store: memoryStore(), tools: [pay], policy: POLICY });
  const session = gate.sessions.open({ agent: "agent:one" });
  const lost = await session.call({ callId: "c", tool: "bank.pay", input: {} });
  expect(lost.answer).toBe("unknown");
  const asked = await session.ask({ callId: "q", text: "Which account?" });
  const open = await gate.interactions.list({ status: "open" });
  expect(open.map(({ type }) => type).toSorted()).toEqual(["ask_user", "connection_lost"]);
  expect(await session.withdrawAll("never mind")).toEqual([asked.interactionId]);
  const left = await gate.interactions.list({ status: "open" });
  expect(left.map(({ type }) => type)).toEqual(["connection_lost"]);
});

test("an agent neither withdraws nor answers the question of another session", async () => {
  const gate = createGate({ store: memoryStore(), tools: [] });
  const [own, other] = ["s-1", "s-2"].map((id) => gate.sessions.open({ id, agent: "agent:one" }));
  const asked = await own?.ask({ callId: "q", text: "Which account?" });
  const id = asked?.interactionId ?? "";
  for (const tried of [other?.withdraw(id, "mine"), other?.reply(id, "the first")]) {
    await expect(tried).rejects.toMatchObject({ code: "not_found" });
  }
  expect(await gate.interactions.get(id)).toMatchObject({ status: "open" });
  expect(await own?.withdraw(id, "mine")).toMatchObject({ outcome: "canceled" });
});
