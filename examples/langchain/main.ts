// A LangChain agent whose refunds wait for a person: its thread is interrupted, the call approved, and the thread resumed.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { createGate } from "sallyport";
import { gateMiddleware, resume } from "sallyport/langchain";
import { z } from "zod";

// In a project of yours: import { createAgent, … } from "langchain", and Command from "@langchain/langgraph".
const frameworks = createRequire(new URL("../../tools/frameworks/package.json", import.meta.url));
const { AIMessage, createAgent, createMiddleware, fakeModel, tool } = frameworks("langchain");
const { Command, MemorySaver } = frameworks("@langchain/langgraph");

const refunds: string[] = [];
const refund = tool(
  ({ invoice }: { invoice: string }) => {
    refunds.push(invoice);
    return `refunded ${invoice}`;
  },
  {
    name: "refund",
    description: "Pays an invoice back.",
    schema: z.object({ invoice: z.string() }),
  },
);
const model = fakeModel()
  .respondWithTools([{ id: "call-1", name: "refund", args: { invoice: "2041" } }])
  .respond(new AIMessage("done"));

const folder = mkdtempSync(path.join(tmpdir(), "sallyport-"));
process.chdir(folder);
const gate = createGate();
const middleware = [createMiddleware(gateMiddleware(gate, [refund], { agent: "billing" }))];
// A thread that must outlive this process needs a checkpointer over a database.
const checkpointer = new MemorySaver();
const agent = createAgent({ model, tools: [refund], middleware, checkpointer });
const thread = { configurable: { thread_id: "chat-1" } };

const stopped = await agent.invoke(
  { messages: [{ role: "user", content: "Refund 2041" }] },
  thread,
);
console.log(`The thread has ${stopped.__interrupt__.length} interrupt.`);
assert.deepEqual(refunds, []);

// Usually in another process: `npx sallyport serve`, or your own page over `sallyport/client`.
const [question] = await gate.interactions.list();
assert.ok(question);
await gate.interactions.approve(question.id, { hash: question.hash, by: "person:ada" });

const { tasks } = await agent.graph.getState(thread);
const interrupts = tasks.flatMap((task: { interrupts: { id: string }[] }) => task.interrupts);
const continued = await resume(gate, [{ run: "chat-1", interrupts }], async (ready) => {
  const { messages } = await agent.invoke(new Command({ resume: ready.resume }), thread);
  console.log(`The model was told: ${messages.at(-2).content}`);
});
assert.deepEqual([continued, refunds], [["chat-1"], ["2041"]]);
console.log("One refund, after one approval.");

await gate.close();
process.chdir(path.dirname(folder));
rmSync(folder, { recursive: true });
