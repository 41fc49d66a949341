// Time limits and sizes that are options: each stops what takes too long or is too large.

import { expect, test } from "vitest";
import { createGate, type GateOptions } from "../../src/index.ts";
import { memoryStore } from "../../src/store/memory/index.ts";
import { defineTool } from "../../src/tools/define-tool.ts";
import { bearer, openHttp, raw } from "../http/http-world.ts";

const never = () => new Promise<never>(() => {});

function openShop(options: Partial<GateOptions>) {
  const shop = { sold: 0 };
  const sell = defineTool({
    name: "shop.sell",
    description: "Sells.",
    input: { type: "object" },
    safety: { effect: "external", checkpoint: "checkpoint" in options },
    execute() {
      shop.sold += 1;
      return "sold";
    },
  });
  const gate = createGate({ store: memoryStore(), tools: [sell], ...options });
  const session = gate.sessions.open({ agent: "agent:x" });
  return { shop, call: () => session.call({ tool: "shop.sell", input: {} }) };
}

test("a review that takes longer than reviewTimeoutMs is a no", async () => {
  const { call, shop } = openShop({
    reviewTimeoutMs: 20,
    validators: { tech: { name: "slow", review: never } },
  });
  expect(await call()).toMatchObject({ answer: "denied", text: expect.stringContaining("20 ms") });
  expect(shop.sold).toBe(0);
});

test("a checkpoint that takes longer than checkpointTimeoutMs is a no", async () => {
  const { call, shop } = openShop({
    checkpointTimeoutMs: 20,
    checkpoint: never,
    policy: {
      version: "1",
      rules: [{ id: "sell", effect: "allow", tool: "shop.sell", reason: "test" }],
    },
  });
  expect(await call()).toMatchObject({ answer: "denied", text: expect.stringContaining("20 ms") });
  expect(shop.sold).toBe(0);
});

test("a request larger than bodyBytes is refused", async () => {
  const world = await openHttp({ server: { limits: { bodyBytes: 100 } } });
  const headers = {
    ...bearer(await world.token("acme", "agent")),
    "content-type": "application/json",
  };
  const send = (id: string) =>
    raw(`${world.server.url}/v1/sessions`, {
      method: "POST",
      headers,
      body: JSON.stringify({ id }),
    });
  expect((await send("small")).status).toBe(201);
  expect(await send("x".repeat(150))).toMatchObject({
    status: 413,
    text: expect.stringContaining("payload_too_large"),
  });
});

test("a sender above senderRate waits, and other senders do not", async () => {
  const limits = { senderRate: { perSecond: 0.001, burst: 3 } };
  const world = await openHttp({ server: { limits } });
  const list = async (subject: string) => {
    const headers = bearer(await world.token("acme", "agent", subject));
    return (await raw(`${world.server.url}/v1/tools`, { headers })).status;
  };
  const first: number[] = [];
  for (let times = 0; times < 6; times += 1) first.push(await list("agent:one"));
  expect(first[0]).toBe(200);
  expect(first.at(-1)).toBe(429);
  expect(await list("agent:two")).toBe(200);
});
