import { expect, test } from "vitest";
import { createGate } from "../../src/gate/create-gate.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { manualClock } from "../../src/util/clock.ts";

test("a gate counts the calls it denied, by tool, agent and check, until one is allowed [I-25]", async () => {
  const input = { type: "object" } as const;
  const look = defineTool({
    name: "shop.look",
    description: "Shows the shop.",
    input,
    permissionClass: "readonly",
    execute: () => "open",
  });
  const burn = defineTool({
    name: "shop.burn",
    description: "Burns.",
    input,
    execute: () => "ash",
  });
  const rule = { id: "no-fire", effect: "deny", tool: "shop.burn", reason: "No fire" } as const;
  await using store = memoryStore();
  const gate = createGate({
    store,
    tools: [look, burn],
    policy: { version: "1", rules: [rule] },
    clock: manualClock(1_000),
  });
  const session = gate.sessions.open({ agent: "agent" });
  const call = (tool: string, callId: string) => session.call({ tool, callId, input: {} });

  expect(gate.denials()).toMatchObject({ total: 0, inARow: 0, lastAt: undefined });
  expect(await call("shop.burn", "1")).toMatchObject({ answer: "denied" });
  expect(await call("shop.burn", "2")).toMatchObject({ answer: "denied" });
  const before = gate.denials();
  expect(before).toEqual({
    total: 2,
    inARow: 2,
    byTool: [["shop.burn", 2]],
    byPolicy: [["rule.no-fire", 2]],
    byAgent: [["agent", 2]],
    lastAt: 1_000,
  });
  expect(await call("shop.look", "3")).toMatchObject({ answer: "done" });
  expect(gate.denials()).toMatchObject({ total: 2, inARow: 0 });
  expect(before.inARow, "a snapshot does not change").toBe(2);
});
