// An agent of the OpenAI Agents SDK whose refunds wait for a person: it stops, is approved, and continues where it stopped.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { createGate } from "sallyport";
import { gateTools, resume } from "sallyport/openai-agents";
import { z } from "zod";

// In a project of yours: import { Agent, run, … } from "@openai/agents".
const frameworks = createRequire(new URL("../../tools/frameworks/package.json", import.meta.url));
const { Agent, RunState, run, setTracingDisabled, tool, Usage } = frameworks("@openai/agents");
setTracingDisabled(true);

const refunds: string[] = [];
const refund = tool({
  name: "refund",
  description: "Pays an invoice back.",
  parameters: z.object({ invoice: z.string() }),
  execute: ({ invoice }: { invoice: string }) => {
    refunds.push(invoice);
    return `refunded ${invoice}`;
  },
});

/** Asks for a refund, then repeats the result. */
const model = {
  async getResponse({ input }: { input: string | { type: string; output?: unknown }[] }) {
    const items = typeof input === "string" ? [] : input;
    const told = items.find(({ type }) => type === "function_call_result");
    const call = { type: "function_call", callId: "call-1", name: "refund", status: "completed" };
    const ask = { ...call, arguments: JSON.stringify({ invoice: "2041" }) };
    const text = { type: "output_text", text: `I was told: ${JSON.stringify(told?.output)}` };
    const say = { type: "message", role: "assistant", status: "completed", content: [text] };
    return { usage: new Usage(), output: [told === undefined ? ask : say] };
  },
};

const folder = mkdtempSync(path.join(tmpdir(), "sallyport-"));
process.chdir(folder);
const gate = createGate();
const tools = gateTools(gate, [refund], { agent: "billing", run: "chat-1" });
const agent = new Agent({ name: "billing", model, tools });

const stopped = await run(agent, "Refund invoice 2041");
console.log(`The agent stopped at ${stopped.interruptions.length} call.`);
assert.deepEqual(refunds, []);
const saved = stopped.state.toString();

// Usually in another process: `npx sallyport serve`, or your own page over `sallyport/client`.
const [question] = await gate.interactions.list();
assert.ok(question);
await gate.interactions.approve(question.id, { hash: question.hash, by: "person:ada" });

// In whichever process comes next.
const state = await RunState.fromString(agent, saved);
const continued = await resume(gate, [{ run: "chat-1", state }], async (ready) => {
  console.log((await run(agent, ready.state)).finalOutput);
});
assert.deepEqual([continued, refunds], [["chat-1"], ["2041"]]);
console.log("One refund, after one approval.");

await gate.close();
process.chdir(path.dirname(folder));
rmSync(folder, { recursive: true });
