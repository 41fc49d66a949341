// The framework itself is not imported: a tool and a tool call of a middleware are small enough to be described by their shapes.

import type { Gate } from "../../gate/create-gate.ts";
import { SallyportError } from "../../model/errors.ts";
import type { CallAnswer } from "../../model/operation.ts";
import type { StandardSchema } from "../../tools/define-tool.ts";
import type { JsonObject } from "../../util/json.ts";
import {
  addPromises,
  type ForeignTool,
  keyOf,
  openRun,
  type Promises,
  type RunOptions,
  registerTools,
  resultOfAnswer,
  resumeAll,
} from "../gate-tools.ts";

export type { Promises } from "../gate-tools.ts";

/** What `tool()` of LangChain returns, as far as it is used here. */
interface StructuredTool {
  readonly name: string;
  readonly description: string;
  /** A schema of zod or a JSON Schema. */
  readonly schema: unknown;
  invoke(input: never, config?: never): Promise<unknown>;
}

interface ToolCall {
  readonly id?: string;
  readonly name: string;
  readonly args: unknown;
}

/** What a middleware and a tool get of the graph that runs them. */
interface GraphRuntime {
  readonly configurable?: { readonly thread_id?: string };
  readonly signal?: AbortSignal;
  readonly interrupt?: (value: never) => unknown;
}

/** A tool call as a middleware of LangChain gets it. */
interface ToolCallRequest {
  readonly toolCall: ToolCall;
  readonly runtime: GraphRuntime;
}

/** Without `run`: the run of a call is its thread. */
export type ThreadOptions = Omit<RunOptions, "run">;

export interface MiddlewareOptions extends ThreadOptions {
  /** Tools that only call an agent whose own tools are gated: they are not asked about, its calls are. */
  readonly delegates?: readonly string[];
}

/**
 * The parts of a middleware for the agents of LangChain; every tool call of the agent goes through the gate:
 *
 *     const middleware = createMiddleware(gateMiddleware(gate, [lookupInvoice, refund], { agent: "billing" }));
 *     const agent = createAgent({ model, tools: [lookupInvoice, refund], middleware: [middleware], checkpointer });
 *
 * The run of a call is its thread, so the agent needs a checkpointer. A call that a person has to decide about interrupts the
 * thread; resumed before the answer is there, it interrupts again. A tool that is not among these is refused.
 */
export function gateMiddleware(
  gate: Gate,
  tools: readonly StructuredTool[],
  { delegates = [], ...options }: MiddlewareOptions,
) {
  registerTools(gate, tools.map(readTool), options.readOnly);
  return {
    name: "sallyport",
    async wrapToolCall<Request extends ToolCallRequest, Message>(
      request: Request,
      handler: (request: Request) => Message | Promise<Message>,
    ): Promise<Message> {
      const { toolCall, runtime } = request;
      if (delegates.includes(toolCall.name)) return handler(request);
      // Each call is a task of its own here, which stops alone.
      const answer = await answerOrInterrupt(gate, options, toolCall, runtime, new Map());
      const message = await handler({ ...request, tool: saying(toolCall.name, answer) });
      return withStatus(message, answer.answer === "done" ? "success" : "error");
    },
  };
}

/**
 * The same tools for a `ToolNode` of LangGraph, each of whose calls goes through the gate:
 *
 *     const tools = gateTools(gate, [lookupInvoice, refund], { agent: "billing", readOnly: ["lookupInvoice"] });
 *     const graph = new StateGraph(MessagesAnnotation).addNode("tools", new ToolNode(tools)) …
 *
 * The rest is as with `gateMiddleware`: the run of a call is its thread, which a call interrupts while a person has to decide.
 */
export function gateTools<const Tools extends readonly StructuredTool[]>(
  gate: Gate,
  tools: Tools,
  options: ThreadOptions,
): Tools {
  registerTools(gate, tools.map(readTool), options.readOnly);
  const asked = new Map<string, Promise<CallAnswer>>();
  const wrapped = tools.map((tool) => {
    const invoke = async (call: ToolCall, runtime: GraphRuntime = {}) => {
      const named = { id: call.id, name: tool.name, args: call.args } as ToolCall;
      const answer = await answerOrInterrupt(gate, options, named, runtime, asked);
      return answer.answer === "done" ? resultOfAnswer(answer) : errorMessage(tool, named, answer);
    };
    return Object.assign(Object.create(Object.getPrototypeOf(tool)), tool, { invoke });
  });
  return wrapped as unknown as Tools;
}

/**
 * What became of the call. While people have to decide about it, it interrupts the thread. The calls of one task stop together
 * at one interrupt, so `asked` has those under way: the first to stop waits for the others and names all that stop.
 */
async function answerOrInterrupt(
  gate: Gate,
  options: ThreadOptions,
  { id, name: tool, args: input }: ToolCall,
  { configurable, signal, interrupt }: GraphRuntime,
  asked: Map<string, Promise<CallAnswer>>,
): Promise<CallAnswer> {
  const thread = configurable?.thread_id;
  if (thread === undefined || id === undefined || interrupt === undefined) {
    const hint = "A gated agent needs a checkpointer and a thread_id: its calls may wait for days.";
    throw new SallyportError("invalid_input", { tool, hint });
  }
  const run = openRun(gate, { ...options, run: thread });
  const key = keyOf(thread, id);
  for (;;) {
    const asking = run.answer({ id, tool, input, signal });
    asked.set(key, asking);
    try {
      const answer = await asking;
      if (answer.answer !== "pending") return answer;
      const together = [...asked].filter(([other]) => other.startsWith(keyOf(thread, "")));
      const settled = await Promise.allSettled(together.map(([, other]) => other));
      const callIds = together
        .filter((_, index) => isPending(settled[index]))
        .map(([other]) => other.slice(keyOf(thread, "").length));
      const { text, decisionId, interactionId } = answer;
      interrupt({ callIds, tool, input, text, decisionId, interactionId } as never);
    } finally {
      asked.delete(key);
    }
  }
}

function isPending(settled: PromiseSettledResult<CallAnswer> | undefined): boolean {
  return settled?.status === "fulfilled" && settled.value.answer === "pending";
}

/** Adds promises to a tool: what it would do, how to undo it, whether it happened. See `Promises`. */
export function gated<Foreign extends StructuredTool>(
  tool: Foreign,
  promises: Promises<InputOf<Foreign>, OutputOf<Foreign>>,
): Foreign {
  return addPromises(tool, promises);
}

/** Of a tool that `tool()` made from a function; others say nothing about what they take and return. */
type InputOf<Foreign> = Foreign extends {
  readonly func: (input: infer Input, ...rest: never[]) => unknown;
}
  ? Input
  : JsonObject;

type OutputOf<Foreign> = Foreign extends {
  readonly func: (input: never, ...rest: never[]) => infer Output;
}
  ? Exclude<Awaited<Output>, AsyncGenerator<unknown, unknown, unknown>>
  : unknown;

/** An interrupt of a thread, as `getState` and results show it. */
interface Interrupt {
  readonly id?: string;
  readonly value?: unknown;
}

/**
 * Continues every thread whose answers are in, each once, however many processes do so, and returns their ids. `interrupts` are
 * those of the thread's tasks; `resume` goes into the next `Command`:
 *
 *     const { tasks } = await agent.graph.getState(thread);
 *     const paused = { run, interrupts: tasks.flatMap(({ interrupts }) => interrupts) };
 *     await resume(gate, [paused], async ({ resume }) => void (await agent.invoke(new Command({ resume }), thread)));
 */
export function resume<
  Run extends { readonly run: string; readonly interrupts: readonly Interrupt[] },
>(
  gate: Gate,
  runs: Iterable<Run> | AsyncIterable<Run>,
  proceed: (run: Run & { readonly resume: Record<string, string> }) => Promise<void>,
): Promise<readonly string[]> {
  const callsOf = ({ interrupts }: Run) => interrupts.flatMap(callIdsOf);
  return resumeAll(gate, runs, callsOf, (paused) => {
    // The words decide nothing: the middleware asks the gate again.
    const resume = Object.fromEntries(paused.interrupts.map(({ id = "" }) => [id, "go on"]));
    return proceed({ ...paused, resume });
  });
}

/** An id that no call has for an interrupt of another origin: its thread stays as it is. */
function callIdsOf({ value }: Interrupt): readonly string[] {
  const isOurs = typeof value === "object" && value !== null && "callIds" in value;
  return isOurs ? (value.callIds as readonly string[]) : [""];
}

/** Stands in for the tool, which the gate has executed: the framework makes its message from what this one returns. */
function saying(name: string, answer: CallAnswer) {
  return { name, invoke: async () => resultOfAnswer(answer) };
}

/** The same message, by which a model sees whether its call succeeded. */
function withStatus<Message>(message: Message, status: "success" | "error"): Message {
  const { constructor: Made, lc_kwargs: fields } = message as Message & Made;
  return new Made({ ...fields, status }) as Message;
}

interface Made {
  readonly constructor: new (fields: object) => unknown;
  readonly lc_kwargs: object;
}

/**
 * A ToolNode takes what is no message for a success. So the base class of all tools makes the message, for a tool that has
 * nothing of the given one but its name and says what the gate answered.
 */
async function errorMessage(tool: StructuredTool, { id }: ToolCall, answer: CallAnswer) {
  let base: object | undefined;
  for (let up = Object.getPrototypeOf(tool); up !== null; up = Object.getPrototypeOf(up)) {
    if (Object.hasOwn(up, "invoke") && Object.hasOwn(up, "call")) base = up;
  }
  const text = String(resultOfAnswer(answer));
  if (base === undefined) return text;
  const { name } = tool;
  const own = { name, schema: { type: "object" }, lc_kwargs: {}, _call: async () => text };
  const saying = Object.assign(Object.create(base), own) as StructuredTool;
  const message = await saying.invoke({ type: "tool_call", id, name, args: {} } as never);
  return withStatus(message, "error");
}

function readTool(tool: StructuredTool): ForeignTool {
  const { name, description, schema } = tool;
  const isStandard = typeof schema === "object" && schema !== null && "~standard" in schema;
  return {
    source: tool,
    name,
    description,
    input: isStandard ? (schema as StandardSchema) : (structuredClone(schema) as JsonObject),
    execute: (input, { signal }) => tool.invoke(input as never, { signal } as never),
  };
}
