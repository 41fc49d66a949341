// Mastra in a story, one process per command: `start`, `resume`, `force` (both say "go on", the gate decides) and `decide`.

import { createRequire } from "node:module";
import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test";
import { gated, gateTools, resume } from "sallyport/mastra";
import {
  AGENT,
  decide,
  input,
  inputOf,
  lookup,
  openGate,
  type Refund,
  RUN,
  refund,
  refuse,
  report,
  STILL_WAITS,
  toldIn,
  type Wish,
} from "./world.ts";

const frameworks = createRequire(new URL("../../tools/frameworks/package.json", import.meta.url));
const { Mastra } = frameworks("@mastra/core");
const { Agent } = frameworks("@mastra/core/agent");
const { createTool } = frameworks("@mastra/core/tools");
const { LibSQLStore } = frameworks("@mastra/libsql");

const [command = "", given = "[]", reason] = process.argv.slice(2);
await using gate = openGate();
const tools = gateTools(
  gate,
  {
    lookup: createTool({
      id: "lookup",
      description: "Reads an invoice.",
      inputSchema: input,
      execute: async (asked: Refund) => lookup(asked),
    }),
    refund: gated(
      createTool({
        id: "refund",
        description: "Pays an invoice back.",
        inputSchema: input,
        async execute(asked: Refund) {
          refuse(asked);
          return refund(asked);
        },
      }),
      process.env["REFUSES"] === undefined ? {} : { failsByThrowing: true },
    ),
  },
  { agent: AGENT, readOnly: ["lookup"] },
);

/** First its calls, then in words what it was told about them. */
const wishes: readonly Wish[] = command === "start" ? JSON.parse(given) : [];
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const model = new MockLanguageModelV4({
  doStream: async ({ prompt }) => {
    const results = prompt.flatMap(({ role, content }) => (role === "tool" ? content : []));
    const told = Object.fromEntries(
      results.flatMap((part) =>
        part.type === "tool-result" ? [[part.toolCallId, JSON.stringify(part.output)]] : [],
      ),
    );
    const calls = wishes.map((wish) => ({
      type: "tool-call",
      toolCallId: wish.id,
      toolName: wish.tool,
      input: JSON.stringify(inputOf(wish)),
    }));
    const words = [
      { type: "text-start", id: "t" },
      { type: "text-delta", id: "t", delta: JSON.stringify(told) },
      { type: "text-end", id: "t" },
    ];
    const isOver = results.length > 0;
    const finish = {
      type: "finish",
      finishReason: { unified: isOver ? "stop" : "tool-calls" },
      usage,
    };
    const parts = [{ type: "stream-start", warnings: [] }, ...(isOver ? words : calls), finish];
    return { stream: convertArrayToReadableStream(parts) } as never;
  },
});
const billing = new Agent({ id: AGENT, name: AGENT, instructions: "Refund.", model, tools });
const storage = new LibSQLStore({ id: "runs", url: "file:runs.db" });
const agent = new Mastra({ agents: { billing }, storage, logger: false }).getAgent("billing");

interface Chunk {
  readonly type: string;
  readonly payload: { readonly toolCallId?: string; readonly text?: string };
}

/** What the stream of the framework shows, the pending calls among it. */
async function follow(stream: { readonly fullStream: AsyncIterable<Chunk> }) {
  const paused: string[] = [];
  let text = "";
  for await (const { type, payload } of stream.fullStream) {
    if (type === "tool-call-suspended") paused.push(payload.toolCallId ?? "");
    if (type === "text-delta") text += payload.text;
  }
  return { paused, told: toldIn(text) };
}

const goOn = async (call: { runId: string; toolCallId: string }) =>
  follow(await agent.resumeStream({}, call));

if (command === "decide") await decide(gate, given, reason);
if (command === "start") report(await follow(await agent.stream("Refund.", { runId: RUN })));
if (command === "resume") {
  let last = STILL_WAITS;
  const continued = await resume(gate, agent, async (call) => {
    last = await goOn(call);
  });
  report(continued.length === 0 ? STILL_WAITS : last);
}
if (command === "force") {
  const { runs } = await agent.listSuspendedRuns();
  for (const { toolCallId } of runs[0].toolCalls) {
    const last = await goOn({ runId: RUN, toolCallId });
    if (toolCallId === runs[0].toolCalls.at(-1).toolCallId) report(last);
  }
}
