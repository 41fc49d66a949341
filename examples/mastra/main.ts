// A Mastra agent whose refunds wait for a person: the run is suspended, the call approved, and the run resumed.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test";
import { createGate } from "sallyport";
import { gateTools, resume } from "sallyport/mastra";
import { z } from "zod";

// In a project of yours: import { Agent } from "@mastra/core/agent", and so on.
const frameworks = createRequire(new URL("../../tools/frameworks/package.json", import.meta.url));
const { Mastra } = frameworks("@mastra/core");
const { Agent } = frameworks("@mastra/core/agent");
const { createTool } = frameworks("@mastra/core/tools");
const { LibSQLStore } = frameworks("@mastra/libsql");

const refunds: string[] = [];
const refund = createTool({
  id: "refund",
  description: "Pays an invoice back.",
  inputSchema: z.object({ invoice: z.string() }),
  execute: async ({ invoice }: { invoice: string }) => {
    refunds.push(invoice);
    return `refunded ${invoice}`;
  },
});

/** Asks for a refund, then says that it is done. */
const model = new MockLanguageModelV4({
  doStream: async ({ prompt }) => {
    const isOver = prompt.some(({ role }) => role === "tool");
    const input = JSON.stringify({ invoice: "2041" });
    const ask = [{ type: "tool-call", toolCallId: "call-1", toolName: "refund", input }];
    const say = [
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: "The refund is done." },
      { type: "text-end", id: "t" },
    ];
    const finishReason = { unified: isOver ? "stop" : "tool-calls" };
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    const parts = [...(isOver ? say : ask), { type: "finish", finishReason, usage }];
    return { stream: convertArrayToReadableStream(parts) } as never;
  },
});

const folder = mkdtempSync(path.join(tmpdir(), "sallyport-"));
process.chdir(folder);
const gate = createGate();
const tools = gateTools(gate, { refund }, { agent: "billing" });
const billing = new Agent({
  id: "billing",
  name: "billing",
  instructions: "Refund.",
  model,
  tools,
});
const storage = new LibSQLStore({ id: "runs", url: "file:runs.db" });
const agent = new Mastra({ agents: { billing }, storage, logger: false }).getAgent("billing");

const stopped = await agent.stream("Refund invoice 2041", { runId: "chat-1" });
const shown: string[] = [];
for await (const { type } of stopped.fullStream) shown.push(type);
assert.ok(shown.includes("tool-call-suspended"));
console.log("The run is suspended.");
assert.deepEqual(refunds, []);

// Usually in another process: `npx sallyport serve`, or your own page over `sallyport/client`.
const [question] = await gate.interactions.list();
assert.ok(question);
await gate.interactions.approve(question.id, { hash: question.hash, by: "person:ada" });

// In whichever process comes next: Mastra's storage knows the suspended runs.
const continued = await resume(gate, agent, async (call) => {
  console.log(await (await agent.resumeStream({}, call)).text);
});
assert.deepEqual([continued, refunds], [["chat-1"], ["2041"]]);
console.log("One refund, after one approval.");

await gate.close();
process.chdir(path.dirname(folder));
rmSync(folder, { recursive: true });
