// Mastra in a story, one process per command: `start`, `resume`, `force` (both say "go on", the gate decides) and `decide`.

import { copyFileSync, existsSync } from "node:fs";
import { createRequire } from "node:module";
import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test";
import { gated, gateTools, inSameRun, resume } from "sallyport/mastra";
import {
  AGENT,
  decide,
  input,
  inputOf,
  lookup,
  openGate,
  type Refund,
  type Report,
  RUN,
  refund,
  refundPromises,
  refuse,
  report,
  STILL_WAITS,
  SUB_AGENT,
  toldIn,
  type Wish,
} from "./world.ts";

const frameworks = createRequire(new URL("../../tools/frameworks/package.json", import.meta.url));
const { Mastra } = frameworks("@mastra/core");
const { Agent } = frameworks("@mastra/core/agent");
const { createTool } = frameworks("@mastra/core/tools");
const { LibSQLStore } = frameworks("@mastra/libsql");

const [command = "", given = "[]", reason = ""] = process.argv.slice(2);
const how = process.env["HOW"];
const isSub = how === "sub-agent";
const who = isSub ? { agent: SUB_AGENT, delegatedBy: [AGENT] } : { agent: AGENT };
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
      refundPromises(),
    ),
  },
  { ...who, readOnly: ["lookup"] },
);

/** First its calls, then in words what it was told about them. */
function scripted(calls: readonly object[]) {
  type Prompt = readonly { readonly role: string; readonly content: unknown }[];
  const turnOf = (prompt: Prompt) => {
    const results = prompt.flatMap(({ role, content }) =>
      role === "tool" ? (content as { toolCallId: string; output: unknown }[]) : [],
    );
    const told = results.map(({ toolCallId, output }) => [toolCallId, JSON.stringify(output)]);
    const isOver = results.length > 0;
    const finishReason = { unified: isOver ? "stop" : "tool-calls" };
    const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
    return { isOver, text: JSON.stringify(Object.fromEntries(told)), end: { finishReason, usage } };
  };
  return new MockLanguageModelV4({
    async doGenerate({ prompt }) {
      const { isOver, text, end } = turnOf(prompt);
      return { content: isOver ? [{ type: "text", text }] : calls, ...end, warnings: [] } as never;
    },
    async doStream({ prompt }) {
      const { isOver, text, end } = turnOf(prompt);
      const words = [
        { type: "text-start", id: "t" },
        { type: "text-delta", id: "t", delta: text },
        { type: "text-end", id: "t" },
      ];
      const parts = [...(isOver ? words : calls), { type: "finish", ...end }];
      const start = { type: "stream-start", warnings: [] };
      return { stream: convertArrayToReadableStream([start, ...parts]) } as never;
    },
  });
}

const callOf = (toolCallId: string, toolName: string, asked: object) => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input: JSON.stringify(asked),
});
const wishes: readonly Wish[] = command === "start" ? JSON.parse(given) : [];
const model = scripted(wishes.map((wish) => callOf(wish.id, wish.tool, inputOf(wish))));
const named = (name: string) => ({
  id: name,
  name,
  description: "Refunds.",
  instructions: "Refund.",
});
const own = new Agent({ ...named(isSub ? SUB_AGENT : AGENT), model, tools });
/** Delegates everything to the one that refunds. */
const parent = () =>
  new Agent({
    ...named(AGENT),
    model: scripted([callOf("d-1", "agent-refunds", { prompt: "Refund." })]),
    agents: { refunds: own },
  });
/** With KEEP the saved run stays as it is, so that two processes continue from the same place. */
function runsFile(): string {
  if (process.env["KEEP"] === undefined) return "runs.db";
  const own = `runs-${process.pid}.db`;
  for (const end of ["", "-wal"]) {
    if (existsSync(`runs.db${end}`)) copyFileSync(`runs.db${end}`, `${own}${end}`);
  }
  return own;
}

const storage = new LibSQLStore({ id: "runs", url: `file:${runsFile()}` });
const agents = { billing: isSub ? parent() : own };
const agent = new Mastra({ agents, storage, logger: false }).getAgent("billing");

interface Suspended {
  readonly suspendPayload?: { readonly callId: string };
}
interface Chunk {
  readonly type: string;
  readonly payload: Suspended & { readonly text?: string };
}
interface Generated {
  readonly finishReason: string;
  readonly text: string;
}

/** What the stream of the framework shows, the pending calls among it. */
async function follow(stream: { readonly fullStream: AsyncIterable<Chunk> }) {
  const paused: string[] = [];
  let text = "";
  for await (const { type, payload } of stream.fullStream) {
    if (type === "tool-call-suspended") paused.push(payload.suspendPayload?.callId ?? "");
    if (type === "text-delta") text += payload.text;
  }
  return { paused, told: toldIn(text) };
}

const options = { delegation: inSameRun };
/** By a stream, however it began: `resumeGenerate` fails while another call of the turn is suspended. */
const goOn = async (call: { runId: string; toolCallId: string }): Promise<Report> =>
  follow(await agent.resumeStream({}, { ...call, ...options }));

/** The same of a result that comes at the end. It names one call of a suspended turn; the storage has all of them. */
async function shown({ finishReason, text }: Generated): Promise<Report> {
  if (finishReason !== "suspended") return { paused: [], told: toldIn(text) };
  const { runs } = await agent.listSuspendedRuns();
  const calls: readonly Suspended[] = runs[0].toolCalls;
  return { paused: calls.map(({ suspendPayload }) => suspendPayload?.callId ?? ""), told: {} };
}

async function start(): Promise<Report> {
  const from = { runId: RUN, ...options };
  return how === "generate"
    ? shown(await agent.generate("Refund.", from))
    : follow(await agent.stream("Refund.", from));
}

if (command === "decide") await decide(gate, given, { reason });
if (command === "start") report(await start());
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
