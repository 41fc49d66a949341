// Claude Code, started by its SDK, whose refunds wait for a person: the call is deferred, approved, and the session continued.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { createGate } from "sallyport";
import { continueQuery, gateClaude, resume } from "sallyport/claude-agent";
import { z } from "zod";
import { startScriptedModel } from "../../tests/support/scripted-model.ts";

const hosts = path.resolve(import.meta.dirname, "../../tools/hosts");
if (!existsSync(path.join(hosts, "node_modules/.installed"))) {
  console.log(
    "Skipped: Claude Code is not installed here. `npm ci --prefix tools/hosts` fetches it.",
  );
  process.exit(0);
}
// In a project of yours: import { query, … } from "@anthropic-ai/claude-agent-sdk".
const fromHosts = createRequire(path.join(hosts, "package.json"));
const { createSdkMcpServer, query, tool } = fromHosts("@anthropic-ai/claude-agent-sdk");

const refunds: string[] = [];
const input = { invoice: z.string() };
const refund = tool(
  "refund",
  "Pays an invoice back.",
  input,
  async (asked: { invoice: string }) => {
    refunds.push(asked.invoice);
    return { content: [{ type: "text", text: `refunded ${asked.invoice}` }] };
  },
);

/** Asks for a refund, then repeats the result. Without it Claude Code would talk to a real model. */
await using model = await startScriptedModel(({ results: [told] }) => {
  const call = { id: "toolu_1", name: "mcp__sallyport__refund", input: { invoice: "2041" } };
  return told === undefined
    ? { calls: [call] }
    : { text: `I was told: ${told.text.split("\n")[0]}` };
});

const folder = mkdtempSync(path.join(tmpdir(), "sallyport-"));
process.chdir(folder);
const gate = createGate();
const run = "chat-1";
const { hooks, tools } = gateClaude(gate, [refund], { agent: "billing", run, hostTools: ["Bash"] });
const options = {
  hooks,
  mcpServers: { sallyport: createSdkMcpServer({ name: "sallyport", tools }) },
  model: "claude-sonnet-4-5",
  settingSources: [],
  env: { ...process.env, HOME: folder, ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: "none" },
};

interface Result {
  readonly type: string;
  readonly session_id: string;
  readonly result: string;
  readonly deferred_tool_use?: { readonly id: string };
}

async function resultOf(messages: AsyncIterable<Result>): Promise<Result> {
  for await (const message of messages) if (message.type === "result") return message;
  throw new Error("Claude Code ended without a result");
}

const stopped = await resultOf(query({ prompt: "Refund invoice 2041", options }));
const { session_id: session, deferred_tool_use: deferred } = stopped;
assert.ok(deferred);
console.log("The call is deferred.");
assert.deepEqual(refunds, []);

// Usually in another process: `npx sallyport serve`, or your own page over `sallyport/client`.
const [question] = await gate.interactions.list();
assert.ok(question);
await gate.interactions.approve(question.id, { hash: question.hash, by: "person:ada" });

// In whichever process comes next: it needs the ids of the run, the session and the call.
const continued = await resume(gate, [{ run, session, deferred }], async (ready) => {
  const again = continueQuery<Result>((prompt) =>
    query({ prompt, options: { ...options, resume: ready.session } }),
  );
  console.log((await resultOf(again)).result);
});
assert.deepEqual([continued, refunds], [[run], ["2041"]]);
console.log("One refund, after one approval.");

await gate.close();
process.chdir(path.dirname(folder));
rmSync(folder, { recursive: true, force: true });
