// LangChain in a story, one process per command: `start`, `resume` and `force` (both say "go on", the gate decides), `decide`.

import { createRequire } from "node:module";
import { deserialize, serialize } from "node:v8";
import { gated, gateMiddleware, resume } from "sallyport/langchain";
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

const [command = "", given = "[]", reason] = process.argv.slice(2);
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
    process.env["REFUSES"] === undefined ? {} : { failsByThrowing: true },
  ),
];
const isSub = process.env["HOW"] === "sub-agent";
const who = isSub ? { agent: SUB_AGENT, delegatedBy: [AGENT] } : { agent: AGENT };
const options = { ...who, readOnly: ["lookup"] };
const middleware = [createMiddleware(gateMiddleware(gate, tools, options))];

/** The checkpoints of the thread, kept in the file of the story. */
const checkpointer = new MemorySaver();
if (command === "resume" || command === "force") {
  const saved = Buffer.from(loadState<string>(), "base64");
  Object.assign(checkpointer, deserialize(saved));
}

/** First its calls; after that it has nothing more to say. */
const wishes: readonly Wish[] = command === "start" ? JSON.parse(given) : [];
const calls = wishes.map((wish) => ({ id: wish.id, name: wish.tool, args: inputOf(wish) }));
const silent = fakeModel();
const model = (wishes.length > 0 ? silent.respondWithTools(calls) : silent).respond(
  new AIMessage("done"),
);
const own = createAgent({ model, tools, middleware, ...(isSub ? {} : { checkpointer }) });
/** As a node of a graph, which has the checkpointer. */
const graph = () =>
  new StateGraph(MessagesAnnotation)
    .addNode("refunds", own.graph)
    .addEdge(START, "refunds")
    .compile({ checkpointer });
const agent = isSub ? graph() : own.graph;
const thread = { configurable: { thread_id: RUN } };

interface Message {
  readonly tool_call_id?: string;
  readonly content: string;
}

async function proceed(from: unknown): Promise<void> {
  const result = await agent.invoke(from, thread);
  const { storage, writes } = checkpointer;
  saveState(serialize({ storage, writes }).toString("base64"));
  const interrupts: readonly { value: { callId: string } }[] = result.__interrupt__ ?? [];
  const messages: readonly Message[] = result.messages;
  const answered = messages.filter(({ tool_call_id }) => tool_call_id !== undefined);
  const told = Object.fromEntries(
    answered.map(({ tool_call_id, content }) => [tool_call_id, content]),
  );
  report({ paused: interrupts.map(({ value }) => value.callId), told });
}

if (command === "decide") await decide(gate, given, reason);
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
