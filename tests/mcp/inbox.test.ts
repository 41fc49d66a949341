// Sallyport itself as an MCP server, over a real HTTP server with a real token.

import { PassThrough } from "node:stream";
import { createGate } from "sallyport";
import { createClient } from "sallyport/client";
import { createServer } from "sallyport/http";
import { serveInbox } from "sallyport/mcp";
import { memoryStore } from "sallyport/store/memory";
import { defineTool } from "sallyport/tools";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { handshake, META, mcpClient } from "./world.ts";

async function inboxWorld(roles: readonly ("agent" | "operator" | "auditor")[]) {
  const store = memoryStore();
  const refund = defineTool({
    name: "billing.refund",
    description: "Refunds an invoice.",
    input: z.object({ cents: z.int() }),
    safety: { effect: "external" },
    execute: () => ({ text: "refunded" }),
  });
  const gate = createGate({ store, checkpoint: "inbox", tools: [refund] });
  const server = await createServer({ store, gates: { default: gate } });
  const token = await server.makeToken({ subject: "helper", roles });
  const calls = createClient({ url: server.url, token }) as unknown as Record<
    string,
    Record<string, (input: object) => Promise<unknown>>
  >;
  const input = new PassThrough();
  const output = new PassThrough();
  const served = serveInbox({
    input,
    output,
    async call(route, given) {
      const [noun = "", verb = ""] = route.split(".");
      return calls[noun]?.[verb]?.(given);
    },
  });
  const client = mcpClient(input, output);
  onTestFinished(async () => {
    client.end();
    await served;
    await server.close();
    await gate.close();
  });
  return { gate, client };
}

test("mcp inbox: an operator's token lists what waits and what it shows, and no tool decides", async () => {
  const { gate, client } = await inboxWorld(["operator"]);
  await handshake(client);
  const asked = await gate.sessions.open({ agent: "bot" }).call({
    callId: "c1",
    tool: "billing.refund",
    input: { cents: 5 },
  });
  expect(asked.answer).toBe("pending");
  const listed = await client.request("tools/list");
  const { tools } = listed["result"] as { tools: { name: string; inputSchema: object }[] };
  expect(tools.map(({ name }) => name)).toContain("inbox_list");
  expect(tools.filter(({ name }) => /approve|reject|answer|settle/.test(name))).toEqual([]);
  const { items } = JSON.parse((await client.call("inbox_list")).text);
  expect(items).toHaveLength(1);
  const shown = await client.call("inbox_get", { id: items[0].id });
  expect(shown.text).toContain("billing.refund");
  const status = await client.call("decision_status", { id: items[0].decisionId });
  expect(JSON.parse(status.text)).toMatchObject({ state: "pending_ml" });
});

test("mcp inbox: an agent claims and completes tasks, sees nobody else's questions, and errors carry their code", async () => {
  const { gate, client } = await inboxWorld(["agent"]);
  const { id } = await gate.tasks.add({ subject: "Count", by: "ada" });
  const request = (name: string, input: object) =>
    client.call(name, input, { _meta: META }).then(({ text, isError }) => ({ text, isError }));
  const claimed = JSON.parse((await request("task_claim", { id, leaseMs: 60_000 })).text);
  expect(claimed).toMatchObject({ id, status: "claimed", claimer: "helper" });
  const done = await request("task_complete", { id, fence: claimed.fence, result: "3" });
  expect(JSON.parse(done.text)).toMatchObject({ status: "completed" });
  const again = await request("task_complete", { id, fence: claimed.fence, result: "4" });
  expect(again.isError).toBe(true);
  expect(again.text).toMatch(/^already_completed: /);
  await gate.sessions
    .open({ agent: "bot" })
    .call({ callId: "c1", tool: "billing.refund", input: { cents: 5 } });
  expect((await request("inbox_list", {})).text).not.toContain("refund");
  expect(await client.request("tools/call", { name: "approve" })).toMatchObject({
    error: { code: -32602 },
  });
});
