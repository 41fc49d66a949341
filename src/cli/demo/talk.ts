import type { LanguageModel } from "ai";
import type { Flow } from "../../flow/index.ts";
import type { Gate } from "../../gate/create-gate.ts";
import type { ServedFlow } from "../../http/index.ts";
import type { TenantStore } from "../../store/store.ts";

export interface Talk extends ServedFlow {
  /** Continues conversations whose question was answered. */
  wake(): Promise<readonly string[]>;
}

/** The demo's agent to talk with. It follows a script; the AI SDK is loaded when it first speaks, after the server listens. */
export function demoTalk(
  { gate, store }: { readonly gate: Gate; readonly store: TenantStore },
  onProblem: (error: unknown) => void,
): Talk {
  let made: Promise<{ flow: Flow; wake: Talk["wake"] }> | undefined;
  async function make() {
    const { createFlow, continueFlows } = await import("../../flow/index.ts");
    const report = ({ error }: { readonly error: unknown }) => onProblem(error);
    const flow = createFlow({
      model: SCRIPTED_MODEL,
      openSession: ({ conversationId, userId }) =>
        gate.sessions.open({ id: `talk.${conversationId}`, agent: "agent:desk", owner: userId }),
      tools: gate.tools,
      states: store.flowStates,
      onProblem: report,
    });
    const { interactions } = gate;
    return {
      flow,
      wake: continueFlows({ flow, states: store.flowStates, interactions, onProblem: report }),
    };
  }
  const use = () => {
    made ??= make();
    return made;
  };
  return {
    handle: async (request) => (await use()).flow.handle(request),
    reply: async (answer) => (await use()).flow.reply(answer),
    confirm: async (answer) => (await use()).flow.confirm(answer),
    resume: async (id, signal) => (await use()).flow.resume(id, signal),
    // Before its first word there is nothing to continue.
    wake: async () => (made === undefined ? [] : (await use()).wake()),
  };
}

const PLAN = {
  action: "plan",
  steps: [
    { text: "Look how many desk lamps there are", done_when: "their number is known" },
    { text: "Take ten desk lamps out of stock", done_when: "the stock is corrected" },
  ],
};
const LOOK = {
  action: "call_tool",
  tool: "stock.look",
  input: { sku: "LAMP-01" },
  summary: "looks at the desk lamps",
};
const TAKE = {
  action: "call_tool",
  tool: "stock.adjust",
  input: { sku: "LAMP-01", by: -10, why: "for the fair" },
  summary: "takes ten desk lamps out of stock",
};

/** The next line follows from what was said so far, so that it is the right one also after a restart. */
function nextLine(prompt: string): string {
  if (prompt.includes("You talk with a user")) return JSON.stringify({ action: "plan" });
  if (prompt.includes("Make a plan for what")) return JSON.stringify(PLAN);
  const isSecond = prompt.includes("You are at step 2");
  const answers = prompt.split("Result (").length - 1;
  if (answers < (isSecond ? 2 : 1)) return JSON.stringify(isSecond ? TAKE : LOOK);
  const check = { goal_check: "the answer of the tool says so" };
  return JSON.stringify({ action: isSecond ? "done" : "next_step", ...check });
}

const CLOSING = "That is what was done for the fair.";
const STOP = { unified: "stop", raw: undefined } as const;
const USAGE = {
  inputTokens: { total: 0, noCache: 0, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 0, text: 0, reasoning: undefined },
};

const SCRIPTED_MODEL: Exclude<LanguageModel, string> = {
  specificationVersion: "v4",
  provider: "demo",
  modelId: "script",
  supportedUrls: {},
  doGenerate: async ({ prompt }) => ({
    content: [{ type: "text", text: nextLine(wordsIn(prompt)) }],
    finishReason: STOP,
    usage: USAGE,
    warnings: [],
  }),
  doStream: async () => ({
    stream: new ReadableStream({
      start(pieces) {
        pieces.enqueue({ type: "text-start", id: "1" });
        pieces.enqueue({ type: "text-delta", id: "1", delta: CLOSING });
        pieces.enqueue({ type: "text-end", id: "1" });
        pieces.enqueue({ type: "finish", finishReason: STOP, usage: USAGE });
        pieces.close();
      },
    }),
  }),
};

/** All texts of a prompt in their order. */
function wordsIn(prompt: readonly { readonly content: unknown }[]): string {
  return prompt
    .flatMap(({ content }) => (Array.isArray(content) ? content : [content]))
    .map((part) => (typeof part === "string" ? part : String(part.text ?? "")))
    .join("\n");
}
