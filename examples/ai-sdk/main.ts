// An AI SDK agent whose refunds wait for a person: it stops, is approved, and continues where it stopped.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { generateText, isStepCount, type ModelMessage } from "ai";
import { createGate } from "sallyport";
import { gateTools, resume } from "sallyport/ai";
import { lookupInvoice, model, refund } from "./agent.ts";

const folder = mkdtempSync(path.join(tmpdir(), "sallyport-"));
process.chdir(folder);
const gate = createGate();
const run = "chat-17";
const agent = { agent: "billing", run, readOnly: ["lookupInvoice"] };
const tools = gateTools(gate, { lookupInvoice, refund }, agent);

const asked: ModelMessage[] = [{ role: "user", content: "Refund invoice 2041" }];
const stopped = await generateText({ model, tools, messages: asked });
const messages = [...asked, ...stopped.responseMessages];
console.log(`The agent stopped: ${stopped.content.map(({ type }) => type).join(", ")}`);
assert.equal(existsSync("ledger.txt"), false);

// Usually in another process: `npx sallyport serve`, or your own page over `sallyport/client`.
const [question] = await gate.interactions.list();
assert.ok(question);
await gate.interactions.approve(question.id, { hash: question.hash, by: "person:ada" });

// In whichever process comes next: it needs the messages and the id of the run.
await resume(gate, [{ run, messages }], async (ready) => {
  const stopWhen = isStepCount(5);
  const { text } = await generateText({ model, tools, messages: ready.messages, stopWhen });
  console.log(text);
});
assert.equal(readFileSync("ledger.txt", "utf8"), "2041 12900\n");
console.log("One refund, after one approval.");

await gate.close();
process.chdir(path.dirname(folder));
rmSync(folder, { recursive: true });
