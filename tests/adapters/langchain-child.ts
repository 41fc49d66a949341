// LangChain in a story, one process per command: `start`, `resume` and `force` (both say "go on", the gate decides), `decide`.

import { createRequire } from "node:module";
import { deserialize, serialize } from "node:v8";
import { gated, gateMiddleware, gateTools, resume } from "sallyport/langchain";
import { z } from "zod";
import {
  AGENT,
  decide,
  input,
  inputOf,
  loadState,
  lookup,
  openGate,
  type Refund,
  RUN,
  refund,
  refundPromises,
  refuse,
  report,
  STILL_WAITS,
  SUB_AGENT,
  saveState,
  type Wish,
} from "./world.ts";

const frameworks = createRequire(new URL("../../tools/frameworks/package.json", import.meta.url));
const { AIMessage, createAgent, createMiddleware, fakeModel, tool } = frameworks("langchain");
const { Command, MemorySaver, MessagesAnnotation, START, StateGraph } =
  frameworks("@langchain/langgraph");
const { ToolNode, toolsCondition } = frameworks("@langchain/langgraph/prebuilt");

const [command = "", given = "[]", reason = ""] = process.argv.slice(2);
await using gate = openGate();
const tools = [
  tool(lookup, { name: "lookup", description: "Reads an invoice.", schema: input }),
  gated(
    tool(
      (asked: Refund) => {
        refuse(asked);
        return refund(asked);
      },
      { name: "refund", description: "Pays an invoice back.", schema: input },
    ),
    refundPromises(),
  ),
];
const how = process.env["HOW"] ?? "createAgent";
const isSub = how === "sub-graph" || how === "agent in a tool";
const who = isSub ? { agent: SUB_AGENT, delegatedBy: [AGENT] } : { agent: AGENT };
const options = { ...who, readOnly: ["lookup"] };

/** The checkpoints of the thread, kept in the file of the story. */
const checkpointer = new MemorySaver();
if (command === "resume" || command === "force") {
  const saved = Buffer.from(loadState<string>(), "base64");
  Object.assign(checkpointer, deserialize(saved));
}

/** First its calls; after that it has nothing more to say. */
const wishes: readonly Wish[] = command === "start" ? JSON.parse(given) : [];
const calls = wishes.map((wish) => ({ id: wish.id, name: wish.tool, args: inputOf(wish) }));
const asking = (calls: readonly object[]) =>
  (calls.length > 0 ? fakeModel().respondWithTools(calls) : fakeModel()).respond(
    new AIMessage("done"),
  );
const model = asking(calls);

/** An agent with the middleware. */
function agentOf(kept: object) {
  const middleware = [createMiddleware(gateMiddleware(gate, tools, options))];
  return createAgent({ model, tools, middleware, ...kept }).graph;
}

/** As a node of a graph, which has the checkpointer. */
const withSubGraph = () =>
  new StateGraph(MessagesAnnotation)
    .addNode("refunds", agentOf({}))
    .addEdge(START, "refunds")
    .compile({ checkpointer });

/** What a tool of its parent calls. */
function withAgentInTool() {
  const own = agentOf({});
  const refunds = tool(
    async ({ task }: { task: string }, config: object) => {
      const { messages } = await own.invoke(
        { messages: [{ role: "user", content: task }] },
        config,
      );
      return messages.at(-2).content;
    },
    { name: "refunds", description: "Refunds.", schema: z.object({ task: z.string() }) },
  );
  const given = { agent: AGENT, delegates: ["refunds"] };
  const middleware = [createMiddleware(gateMiddleware(gate, [], given))];
  const call = { id: "d-1", name: "refunds", args: { task: "Refund." } };
  const parent = asking(wishes.length > 0 ? [call] : []);
  return createAgent({ model: parent, tools: [refunds], middleware, checkpointer }).graph;
}

/** A graph without an agent, whose node calls the tools. */
function withToolNode() {
  const ask = async ({ messages }: { messages: unknown[] }) => ({
    messages: [await model.invoke(messages)],
  });
  return new StateGraph(MessagesAnnotation)
    .addNode("model", ask)
    .addNode("tools", new ToolNode(gateTools(gate, tools, options)))
    .addEdge(START, "model")
    .addConditionalEdges("model", toolsCondition)
    .addEdge("tools", "model")
    .compile({ checkpointer });
}

const graphs: Record<string, () => ReturnType<typeof agentOf>> = {
  "sub-graph": withSubGraph,
  "agent in a tool": withAgentInTool,
  ToolNode: withToolNode,
};
const agent = graphs[how]?.() ?? agentOf({ checkpointer });
const thread = { configurable: { thread_id: RUN } };

interface Message {
  readonly tool_call_id?: string;
  readonly content: string;
  readonly status?: string;
}

/** The state at the end. A stream says by itself where it stops. */
async function run(from: unknown) {
  if (how !== "stream") return agent.invoke(from, thread);
  const stopped: unknown[] = [];
  for await (const update of await agent.stream(from, { ...thread, streamMode: "updates" })) {
    stopped.push(...(update.__interrupt__ ?? []));
  }
  return { ...(await agent.getState(thread)).values, __interrupt__: stopped };
}

async function proceed(from: unknown): Promise<void> {
  const result = await run(from);
  const { storage, writes } = checkpointer;
  saveState(serialize({ storage, writes }).toString("base64"));
  const interrupts: readonly { value: { callIds: string[] } }[] = result.__interrupt__ ?? [];
  const messages: readonly Message[] = result.messages;
  const answered = messages.filter(({ tool_call_id }) => tool_call_id !== undefined);
  const told = Object.fromEntries(
    answered.map(({ tool_call_id, status, content }) => [tool_call_id, `${status}: ${content}`]),
  );
  report({ paused: interrupts.flatMap(({ value }) => value.callIds), told });
}

if (command === "decide") await decide(gate, given, { reason });
if (command === "start") await proceed({ messages: [{ role: "user", content: "Refund." }] });
if (command === "resume" || command === "force") {
  const { tasks } = await agent.getState(thread);
  const interrupts: readonly { id: string }[] = tasks.flatMap(
    (task: { interrupts: { id: string }[] }) => task.interrupts,
  );
  if (command === "resume") {
    const continued = await resume(gate, [{ run: RUN, interrupts }], (ready) =>
      proceed(new Command({ resume: ready.resume })),
    );
    if (continued.length === 0) report(STILL_WAITS);
  } else {
    const goOn = Object.fromEntries(interrupts.map(({ id }) => [id, "go on"]));
    await proceed(new Command({ resume: goOn }));
  }
}
