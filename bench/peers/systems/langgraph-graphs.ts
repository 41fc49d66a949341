import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import {
  Annotation,
  Command,
  END,
  interrupt,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import type { Effect, Refund } from "../peer.ts";

/** A compiled graph. */
export interface Flow {
  start(refund: Refund, thread: string): Promise<unknown>;
  /** With a person's yes, or with nothing new. True once the tool has run. */
  goOn(how: "yes" | "nothing new", thread: string): Promise<boolean>;
}

export type MakeFlow = (checkpointer: BaseCheckpointSaver, effect: Effect) => Flow;

const threadOf = (thread_id: string) => ({ configurable: { thread_id } });

/** The leanest graph that does it: one node and plain values. */
export const leanGraph: MakeFlow = (checkpointer, effect) => {
  const State = Annotation.Root({ refund: Annotation<Refund>, outcome: Annotation<string> });
  const graph = new StateGraph(State)
    .addNode("tool", async ({ refund }) => {
      const yes = interrupt({ ask: "May this run?", refund, shown: effect.preview() });
      return { outcome: yes === true ? await effect.run(refund) : "rejected" };
    })
    .addEdge(START, "tool")
    .addEdge("tool", END)
    .compile({ checkpointer });
  return {
    start: (refund, thread) => graph.invoke({ refund }, threadOf(thread)),
    async goOn(how, thread) {
      const { outcome } = await (how === "yes"
        ? graph.invoke(new Command({ resume: true }), threadOf(thread))
        : graph.invoke(null, threadOf(thread)));
      return outcome !== undefined;
    },
  };
};

/** The usual loop of model and tools over messages, with a scripted model. */
export const agentGraph: MakeFlow = (checkpointer, effect) => {
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("model", ({ messages }) => {
      const last = messages.at(-1);
      if (last instanceof ToolMessage) return { messages: [new AIMessage("done")] };
      const args = JSON.parse(String(last?.content)) as Refund;
      const tool_calls = [{ name: "refund", args: { ...args }, id: "c1" }];
      return { messages: [new AIMessage({ content: "", tool_calls })] };
    })
    .addNode("tools", async ({ messages }) => {
      const [call] = (messages.at(-1) as AIMessage).tool_calls ?? [];
      const refund = call?.args as Refund;
      const yes = interrupt({ ask: "May this run?", refund, shown: effect.preview() });
      const content = yes === true ? await effect.run(refund) : "rejected";
      return { messages: [new ToolMessage({ content, tool_call_id: call?.id ?? "" })] };
    })
    .addEdge(START, "model")
    .addConditionalEdges(
      "model",
      ({ messages }) => {
        const { tool_calls = [] } = messages.at(-1) as AIMessage;
        return tool_calls.length > 0 ? "tools" : END;
      },
      ["tools", END],
    )
    .addEdge("tools", "model")
    .compile({ checkpointer });
  return {
    start: (refund, thread) =>
      graph.invoke({ messages: [new HumanMessage(JSON.stringify(refund))] }, threadOf(thread)),
    async goOn(how, thread) {
      const { messages } = await (how === "yes"
        ? graph.invoke(new Command({ resume: true }), threadOf(thread))
        : graph.invoke(null, threadOf(thread)));
      return messages.some((message) => message instanceof ToolMessage);
    },
  };
};
