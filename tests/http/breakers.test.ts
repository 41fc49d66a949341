// Tools that fail and calls that are denied, as people see them from outside.

import { expect, test } from "vitest";
import { defineTool } from "../../src/tools/define-tool.ts";
import { credentials, openHttp, raw } from "./http-world.ts";

const broken = defineTool({
  name: "shop.sell",
  description: "Sells.",
  input: { type: "object" },
  safety: { effect: "external" },
  execute: () => ({ text: "sold out", isError: true }),
});
const RULES = [
  { id: "sell", effect: "allow", tool: "shop.sell", reason: "test" },
  { id: "no", effect: "deny", tool: "shop.burn", reason: "test" },
] as const;

test("people see which tool was stopped, in metrics too, and one of them lets it be called again [I-09 I-25]", async () => {
  const burn = defineTool({
    name: "shop.burn",
    description: "Burns.",
    input: { type: "object" },
    execute: () => "ash",
  });
  const world = await openHttp({
    port: {
      tools: [broken, burn],
      policy: { version: "1", rules: RULES },
      breaker: { threshold: 2 },
    },
  });
  const agent = await world.client("acme", "agent");
  const { id } = await agent.sessions.open({});
  const call = (tool: string, callId: string) =>
    agent.sessions.call({ id, callId, tool, input: {} });
  await call("shop.sell", "1");
  await call("shop.sell", "2");
  expect(await call("shop.sell", "3")).toMatchObject({
    answer: "denied",
    findings: [{ policy: "breaker" }],
  });
  await call("shop.burn", "4");

  const operator = await world.client("acme", "operator");
  expect(await operator.breakers.list({})).toMatchObject({
    items: [{ id: "shop.sell", state: "open", failures: 2, reason: "sold out" }],
  });
  expect(await operator.denials.get({})).toMatchObject({
    total: 2,
    byTool: [
      { name: "shop.sell", count: 1 },
      { name: "shop.burn", count: 1 },
    ],
    byPolicy: [
      { name: "breaker", count: 1 },
      { name: "rule.no", count: 1 },
    ],
    byAgent: [{ name: "agent:one", count: 2 }],
  });
  const headers = credentials(await world.pass("acme", "operator"));
  const { text } = await raw(`${world.server.url}/metrics`, { headers });
  expect(text).toContain('sallyport_denials_total{tool="shop.sell"} 1\n');
  expect(text).toContain('sallyport_denials_total{tool="shop.burn"} 1\n');
  expect(text).toContain('sallyport_denials_by_check_total{check="rule.no"} 1\n');
  expect(text).toContain('sallyport_breaker_open{tool="shop.sell"} 1\n');
  expect(text).toContain('sallyport_breaker_failures{tool="shop.sell"} 2\n');
  expect(text, "no subjects").not.toContain("agent:one");

  const closing = { tool: "shop.sell", reason: "the shop is back" };
  await expect(agent.breakers.close(closing)).rejects.toMatchObject({ code: "not_allowed" });
  const bolt = await world.client("bolt", "operator");
  await expect(bolt.breakers.close(closing), "another tenant").rejects.toMatchObject({
    code: "not_found",
  });
  expect(await operator.breakers.close(closing)).toMatchObject({
    state: "closed",
    closedBy: "person:operator",
  });
  expect(await call("shop.sell", "5")).toMatchObject({ answer: "failed", text: "sold out" });
  expect(world.problems).toEqual([]);
});
