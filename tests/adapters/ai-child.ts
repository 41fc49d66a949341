// The AI SDK in a story, one process per command: `start`, `resume`, `force` (says approved without asking) and `decide`.

import {
  generateText,
  isStepCount,
  type ModelMessage,
  streamText,
  type Tool,
  ToolLoopAgent,
  tool,
} from "ai";
import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test";
import { isSallyportError } from "sallyport";
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
  refundPromises,
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
      refundPromises(),
    ),
  },
  { ...who, run: RUN, readOnly: ["lookup"] },
);

const wishes: readonly Wish[] = command === "start" ? JSON.parse(given) : [];
type Prompt = readonly { readonly role: string; readonly content: unknown }[];
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } } as never;

/** First its calls, then in words what it was told about them. */
function turnOf(prompt: Prompt, asked: readonly object[]) {
  const results = prompt.flatMap(({ role, content }) =>
    role === "tool" ? (content as { toolCallId: string; output: unknown }[]) : [],
  );
  const told = Object.fromEntries(
    results.map(({ toolCallId, output }) => [toolCallId, JSON.stringify(output)]),
  );
  return results.length === 0 ? { calls: asked } : { text: JSON.stringify(told) };
}

const scripted = (asked: readonly object[]) =>
  new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const turn = turnOf(prompt, asked);
      const content = "text" in turn ? [{ type: "text", text: turn.text }] : turn.calls;
      const finishReason = { unified: "text" in turn ? "stop" : "tool-calls" };
      return { content, finishReason, usage, warnings: [] } as never;
    },
    doStream: async ({ prompt }) => {
      const turn = turnOf(prompt, asked);
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

const model = scripted(
  wishes.map((wish) => ({
    type: "tool-call",
    toolCallId: wish.id,
    toolName: wish.tool,
    input: JSON.stringify(inputOf(wish)),
  })),
);

interface Went extends Report {
  readonly messages: ModelMessage[];
}

/** One run of the framework, in the way that the story asks for. */
async function run(messages: ModelMessage[]): Promise<Went> {
  const settings = { model, tools, stopWhen: isStepCount(5) };
  const agent = new ToolLoopAgent(settings);
  if (how === "streamText") return followed(streamText({ ...settings, messages }), messages);
  if (how === "agent.stream") return followed(await agent.stream({ messages }), messages);
  const result =
    how === "agent" || isSub
      ? await agent.generate({ messages })
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

interface Streamed {
  readonly stream: AsyncIterable<{ readonly type: string; readonly error?: unknown }>;
  readonly responseMessages: PromiseLike<ModelMessage[]>;
  readonly text: PromiseLike<string>;
}

/** What the stream of the framework shows, the pending calls among it. An error is a part of it. */
async function followed(result: Streamed, messages: ModelMessage[]): Promise<Went> {
  const paused: string[] = [];
  for await (const part of result.stream) {
    if (part.type === "error") throw part.error;
    if (part.type !== "tool-approval-request") continue;
    paused.push((part as unknown as { toolCall: { toolCallId: string } }).toolCall.toolCallId);
  }
  const more = await result.responseMessages;
  return { paused, told: toldIn(await result.text), messages: [...messages, ...more] };
}

async function proceed(messages: ModelMessage[]): Promise<void> {
  const { paused, told, messages: all } = await run(messages);
  saveState(all);
  report({ paused, told });
}

/** What the host keeps of a parent and of its sub-agent, which are two conversations of one run. */
interface Family {
  readonly parent: ModelMessage[];
  readonly child: ModelMessage[];
}

/** The parent stops at a tool that has no execute: its host has the sub-agent do the work, and gives the parent the result. */
const delegate = tool({ description: "Refunds.", inputSchema: z.object({}) }) as Tool;
const delegating = { type: "tool-call", toolCallId: "d-1", toolName: "delegate", input: "{}" };
const parent = new ToolLoopAgent({ model: scripted([delegating]), tools: { delegate } });

async function proceedAsSub(family: Family): Promise<void> {
  const { paused, told, messages: child } = await run(family.child);
  if (paused.length > 0) {
    saveState({ ...family, child });
    report({ paused, told: {} });
    return;
  }
  const output = { type: "text" as const, value: JSON.stringify(told) };
  const result = { type: "tool-result" as const, toolCallId: "d-1", toolName: "delegate", output };
  const messages: ModelMessage[] = [...family.parent, { role: "tool", content: [result] }];
  const { text } = await parent.generate({ messages });
  saveState({ parent: messages, child });
  report({ paused: [], told: toldIn(text) });
}

if (command === "decide") await decide(gate, given, { reason });
const asked: ModelMessage[] = [{ role: "user", content: "Refund what is due." }];
if (command === "start" && !isSub) await proceed(asked);
if (command === "start" && isSub) {
  const { responseMessages } = await parent.generate({ messages: asked });
  await proceedAsSub({ parent: [...asked, ...responseMessages], child: asked });
}
if (command === "resume") {
  const family = isSub ? loadState<Family>() : undefined;
  const messages = family?.child ?? loadState<ModelMessage[]>();
  const continued = await resume(gate, [{ run: RUN, messages }], (ready) =>
    family === undefined
      ? proceed(ready.messages)
      : proceedAsSub({ ...family, child: ready.messages }),
  );
  if (continued.length === 0) report(STILL_WAITS);
}
if (command === "force") {
  const messages = loadState<ModelMessage[]>();
  const requests = messages.flatMap(({ role, content }) =>
    role === "assistant" && typeof content !== "string" ? content : [],
  );
  const content = requests.flatMap((part) =>
    part.type === "tool-approval-request"
      ? [{ type: "tool-approval-response" as const, approvalId: part.approvalId, approved: true }]
      : [],
  );
  await proceed([...messages, { role: "tool", content }]).catch(stillWaits);
}

/** The run failed, and what is kept of it stays as it was. */
function stillWaits(error: unknown): void {
  if (!isSallyportError(error, "still_running")) throw error;
  report(STILL_WAITS);
}
