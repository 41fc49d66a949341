// The same three conversations as in worker.config.ts, with the OpenAI Agents SDK. As a program of its own it starts them.

import { appendFileSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Gate } from "sallyport";
import { gateTools, resume } from "sallyport/openai-agents";
import { AGENT, input, openGate, refund } from "./world.ts";

const frameworks = createRequire(new URL("../../tools/frameworks/package.json", import.meta.url));
const { Agent, RunState, run, setTracingDisabled, tool, Usage } = frameworks("@openai/agents");
setTracingDisabled(true);

interface Item {
  readonly type: string;
  readonly output?: unknown;
}

/** Asks for one refund, then says what it was told and that it is done. */
const model = (invoice: string) => ({
  async getResponse({ input: items }: { input: readonly Item[] | string }) {
    const told =
      typeof items === "string" ? [] : items.filter(({ output }) => output !== undefined);
    const content = [{ type: "output_text", text: "done" }];
    const say = { type: "message", role: "assistant", status: "completed", content };
    const asked = JSON.stringify({ invoice, cents: 1 });
    const call = { type: "function_call", callId: "1", name: "refund", status: "completed" };
    return { usage: new Usage(), output: [told.length > 0 ? say : { ...call, arguments: asked }] };
  },
});

function agentOf(gate: Gate, name: string) {
  const description = "Pays back.";
  const refunding = tool({ name: "refund", description, parameters: input, execute: refund });
  const tools = gateTools(gate, [refunding], { agent: AGENT, run: name });
  return new Agent({ name: AGENT, model: model(name), tools });
}

async function proceed(gate: Gate, name: string, from: unknown): Promise<void> {
  const { state } = await run(agentOf(gate, name), from);
  // Written whole: the other worker may be reading.
  writeFileSync(`new-${name}.json`, state.toString());
  renameSync(`new-${name}.json`, `chat-${name}.json`);
}

async function stopped(gate: Gate) {
  const files = readdirSync(".").filter((file) => file.startsWith("chat-"));
  return Promise.all(
    files.map(async (file) => {
      const name = file.slice("chat-".length, -".json".length);
      const state = await RunState.fromString(agentOf(gate, name), readFileSync(file, "utf8"));
      return { run: name, state };
    }),
  );
}

export default {
  tools: [],
  resume: async (gate: Gate) =>
    resume(gate, await stopped(gate), async ({ run: name, state }) => {
      appendFileSync("continued.txt", `${name}\n`);
      await proceed(gate, name, state);
    }),
};

if (process.argv[2] === "start") {
  await using gate = openGate();
  for (const name of ["a", "b", "c"]) await proceed(gate, name, "Refund.");
}
