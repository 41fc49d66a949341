// The AI SDK in a story, one process per command: `start`, `resume`, `force` (says approved without asking) and `decide`.

import { generateText, isStepCount, type ModelMessage, streamText, ToolLoopAgent, tool } from "ai";
import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test";
import { gated, gateTools, resume } from "sallyport/ai";
import { z } from "zod";
import {
  AGENT,
  decide,
  input,
  inputOf,
  loadState,
  lookup,
  openGate,
  type Report,
  RUN,
  refund,
  refuse,
  report,
  STILL_WAITS,
  SUB_AGENT,
  saveState,
  toldIn,
  type Wish,
} from "./world.ts";

const [command = "", given = "[]", reason = ""] = process.argv.slice(2);
await using gate = openGate();
const how = process.env["HOW"] ?? "generateText";
const isSub = how === "sub-agent";
const who = isSub ? { agent: SUB_AGENT, delegatedBy: [AGENT] } : { agent: AGENT };
const tools = gateTools(
  gate,
  {
    lookup: tool({ description: "Reads an invoice.", inputSchema: input, execute: lookup }),
    refund: gated(
      tool({
        description: "Pays an invoice back.",
        inputSchema: input,
        execute(asked) {
          refuse(asked);
          return refund(asked);
        },
      }),
      // What it refuses it refuses before anything happens; a lost answer is no refusal.
      { ...(process.env["REFUSES"] === undefined ? {} : { failsByThrowing: true }) },
    ),
  },
  { ...who, run: RUN, readOnly: ["lookup"] },
);

const wishes: readonly Wish[] = command === "start" ? JSON.parse(given) : [];
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } } as never;

/** First its calls, then in words what it was told about them. */
function turnOf(prompt: readonly { readonly role: string; readonly content: unknown }[]) {
  const results = prompt.flatMap(({ role, content }) =>
    role === "tool" ? (content as { toolCallId: string; output: unknown }[]) : [],
  );
  const calls = wishes.map((wish) => ({
    type: "tool-call" as const,
    toolCallId: wish.id,
    toolName: wish.tool,
    input: JSON.stringify(inputOf(wish)),
  }));
  const told = Object.fromEntries(
    results.map(({ toolCallId, output }) => [toolCallId, JSON.stringify(output)]),
  );
  return results.length === 0 ? { calls } : { text: JSON.stringify(told) };
}

const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const turn = turnOf(prompt);
    const content = "text" in turn ? [{ type: "text", text: turn.text }] : turn.calls;
    const finishReason = { unified: "text" in turn ? "stop" : "tool-calls" };
    return { content, finishReason, usage, warnings: [] } as never;
  },
  doStream: async ({ prompt }) => {
    const turn = turnOf(prompt);
    const parts =
      "text" in turn
        ? [
            { type: "text-start", id: "t" },
            { type: "text-delta", id: "t", delta: turn.text },
            { type: "text-end", id: "t" },
          ]
        : turn.calls;
    const finishReason = { unified: "text" in turn ? "stop" : "tool-calls" };
    const all = [{ type: "stream-start", warnings: [] }, ...parts];
    return {
      stream: convertArrayToReadableStream([...all, { type: "finish", finishReason, usage }]),
    } as never;
  },
});

/** One run of the framework, in the way that the story asks for. */
async function run(
  messages: ModelMessage[],
): Promise<Report & { readonly messages: ModelMessage[] }> {
  const settings = { model, tools, stopWhen: isStepCount(5) };
  if (how === "streamText") {
    const result = streamText({ ...settings, messages });
    const paused: string[] = [];
    for await (const part of result.stream) {
      if (part.type === "tool-approval-request") paused.push(part.toolCall.toolCallId);
    }
    const more = await result.responseMessages;
    return { paused, told: toldIn(await result.text), messages: [...messages, ...more] };
  }
  const result =
    how === "agent" || isSub
      ? await new ToolLoopAgent(settings).generate({ messages })
      : await generateText({ ...settings, messages });
  const paused = result.content.flatMap((part) =>
    part.type === "tool-approval-request" ? [part.toolCall.toolCallId] : [],
  );
  return {
    paused,
    told: toldIn(result.text),
    messages: [...messages, ...result.responseMessages],
  };
}

async function proceed(messages: ModelMessage[]): Promise<void> {
  const { paused, told, messages: all } = await run(messages);
  saveState(all);
  report({ paused, told });
}

if (command === "decide") await decide(gate, given, { reason });
const asked: ModelMessage[] = [{ role: "user", content: "Refund what is due." }];
if (command === "start" && !isSub) await proceed(asked);
if (command === "start" && isSub) {
  // The parent has one tool, its sub-agent, whose run is kept like any other and goes on by itself.
  const delegate = tool({
    description: "Refunds.",
    inputSchema: z.object({}),
    async execute() {
      await proceed(asked);
      return "It waits for a person.";
    },
  });
  const call = { type: "tool-call", toolCallId: "d-1", toolName: "delegate", input: "{}" };
  const parent = new MockLanguageModelV4({
    doGenerate: async () =>
      ({ content: [call], finishReason: { unified: "tool-calls" }, usage, warnings: [] }) as never,
  });
  await new ToolLoopAgent({
    model: parent,
    tools: { delegate },
    stopWhen: isStepCount(1),
  }).generate({
    messages: asked,
  });
}
if (command === "resume") {
  const messages = loadState<ModelMessage[]>();
  const continued = await resume(gate, [{ run: RUN, messages }], (ready) =>
    proceed(ready.messages),
  );
  if (continued.length === 0) report(STILL_WAITS);
}
if (command === "force") {
  const messages = loadState<ModelMessage[]>();
  const asked = messages.flatMap(({ role, content }) =>
    role === "assistant" && typeof content !== "string" ? content : [],
  );
  const content = asked.flatMap((part) =>
    part.type === "tool-approval-request"
      ? [{ type: "tool-approval-response" as const, approvalId: part.approvalId, approved: true }]
      : [],
  );
  await proceed([...messages, { role: "tool", content }]);
}
