// Three conversations of the AI SDK that stop at a refund, and how a worker continues them. As a program of its own it starts them.

import { appendFileSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { generateText, isStepCount, type ModelMessage, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import type { Gate } from "sallyport";
import { gateTools, type PausedRun, resume } from "sallyport/ai";
import { AGENT, input, openGate, refund } from "./world.ts";

/** Asks for one refund, then says something. */
const model = (invoice: string) =>
  new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const isOver = prompt.some(({ role }) => role === "tool");
      const asked = JSON.stringify({ invoice, cents: 1 });
      const call = { type: "tool-call", toolCallId: "1", toolName: "refund", input: asked };
      return {
        content: [isOver ? { type: "text", text: "done" } : call],
        finishReason: { unified: isOver ? "stop" : "tool-calls" },
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
        warnings: [],
      } as never;
    },
  });

async function proceed(gate: Gate, run: string, messages: ModelMessage[]): Promise<void> {
  const refunding = tool({ description: "Pays back.", inputSchema: input, execute: refund });
  const tools = gateTools(gate, { refund: refunding }, { agent: AGENT, run });
  const settings = { model: model(run), tools, stopWhen: isStepCount(3) };
  const { responseMessages } = await generateText({ ...settings, messages });
  // Written whole: the other worker may be reading.
  writeFileSync(`new-${run}.json`, JSON.stringify([...messages, ...responseMessages]));
  renameSync(`new-${run}.json`, `chat-${run}.json`);
}

function chats(): readonly PausedRun[] {
  const files = readdirSync(".").filter((file) => file.startsWith("chat-"));
  return files.map((file) => ({
    run: file.slice("chat-".length, -".json".length),
    messages: JSON.parse(readFileSync(file, "utf8")) as ModelMessage[],
  }));
}

export default {
  tools: [],
  resume: (gate: Gate) =>
    resume(gate, chats(), async ({ run, messages }) => {
      appendFileSync("continued.txt", `${run}\n`);
      await proceed(gate, run, messages);
    }),
};

if (process.argv[2] === "start") {
  await using gate = openGate();
  for (const run of ["a", "b", "c"]) {
    await proceed(gate, run, [{ role: "user", content: "Refund." }]);
  }
}
