// The framework itself is not imported: a tool and a tool call of a middleware are small enough to be described by their shapes.

import type { Gate } from "../../gate/create-gate.ts";
import { SallyportError } from "../../model/errors.ts";
import type { CallAnswer } from "../../model/operation.ts";
import type { StandardSchema } from "../../tools/define-tool.ts";
import type { JsonObject } from "../../util/json.ts";
import {
  addPromises,
  type ForeignTool,
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

/** A tool call as a middleware of LangChain gets it. */
interface ToolCallRequest {
  readonly toolCall: { readonly id?: string; readonly name: string; readonly args: unknown };
  readonly runtime: {
    readonly configurable?: { readonly thread_id?: string };
    readonly signal?: AbortSignal;
    readonly interrupt?: (value: never) => unknown;
  };
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
  options: Omit<RunOptions, "run">,
) {
  registerTools(gate, tools.map(readTool), options.readOnly);
  return {
    name: "sallyport",
    async wrapToolCall<Request extends ToolCallRequest, Message>(
      request: Request,
      handler: (request: Request) => Message | Promise<Message>,
    ): Promise<Message> {
      const { toolCall, runtime } = request;
      const { thread_id: thread } = runtime.configurable ?? {};
      const { id } = toolCall;
      if (thread === undefined || id === undefined || runtime.interrupt === undefined) {
        const hint =
          "A gated agent needs a checkpointer and a thread_id: its calls may wait for days.";
        throw new SallyportError("invalid_input", { tool: toolCall.name, hint });
      }
      const { name: tool, args: input } = toolCall;
      const call = { id, tool, input, signal: runtime.signal };
      const run = openRun(gate, { ...options, run: thread });
      for (;;) {
        const answer = await run.answer(call);
        if (answer.answer !== "pending") return handler({ ...request, tool: saying(tool, answer) });
        const { text, decisionId, interactionId } = answer;
        runtime.interrupt({ callId: id, tool, input, text, decisionId, interactionId } as never);
      }
    },
  };
}

/** Adds promises to a tool: what it would do, how to undo it, whether it happened. See `Promises`. */
export function gated<Foreign extends StructuredTool, Input = JsonObject, Output = unknown>(
  tool: Foreign,
  promises: Promises<Input, Output>,
): Foreign {
  return addPromises(tool, promises);
}

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
  const callsOf = ({ interrupts }: Run) => interrupts.map(callIdOf);
  return resumeAll(gate, runs, callsOf, (paused) => {
    // The words decide nothing: the middleware asks the gate again.
    const resume = Object.fromEntries(paused.interrupts.map(({ id = "" }) => [id, "go on"]));
    return proceed({ ...paused, resume });
  });
}

/** Empty for an interrupt of somebody else: no call has that id, so the thread stays as it is. */
function callIdOf({ value }: Interrupt): string {
  const isOurs = typeof value === "object" && value !== null && "callId" in value;
  return isOurs ? String(value.callId) : "";
}

/** Stands in for the tool, which the gate has executed: the framework makes its message from what this one returns. */
function saying(name: string, answer: CallAnswer) {
  return { name, invoke: async () => resultOfAnswer(answer) };
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
