// The framework itself is not imported: a function tool and a stopped run are small enough to be described by their shapes.

import type { Gate } from "../../gate/create-gate.ts";
import { SallyportError } from "../../model/errors.ts";
import type { JsonObject } from "../../util/json.ts";
import {
  addPromises,
  type ForeignTool,
  type GatedRun,
  openRun,
  type Promises,
  type RunOptions,
  registerTools,
  resultOfAnswer,
  resumeAll,
} from "../gate-tools.ts";

export type { Promises, RunOptions } from "../gate-tools.ts";

/** What `tool()` of `@openai/agents` returns, as far as it is used here. */
interface FunctionTool {
  readonly type: "function";
  readonly name: string;
  readonly description: string;
  /** A JSON Schema. */
  readonly parameters: unknown;
  readonly needsApproval: (context: never, input: never, callId?: string) => Promise<boolean>;
  readonly invoke: (context: never, input: string, details?: never) => Promise<unknown>;
}

interface CallDetails {
  readonly toolCall?: { readonly callId?: string };
  readonly signal?: AbortSignal;
}

/**
 * The same tools, each of whose calls goes through the gate:
 *
 *     const tools = gateTools(gate, [lookupInvoice, refund], { agent: "billing", readOnly: ["lookupInvoice"] });
 *     const result = await run(new Agent({ name: "billing", model, tools }), "Refund invoice 2041");
 *
 * A call that a person has to decide about stops the run with an interruption. Throws invalid_input for anything but a
 * function tool: the gate would not see its calls.
 */
export function gateTools<const Tools extends readonly FunctionTool[]>(
  gate: Gate,
  tools: Tools,
  options: RunOptions,
): Tools {
  /** The run's own context by call; one that another process executes has none. */
  const contexts = new Map<string, unknown>();
  const foreign = tools.map((tool) => readTool(tool, contexts));
  registerTools(gate, foreign, options.readOnly);
  const run = openRun(gate, options);
  return tools.map((tool) => throughGate(tool, run, contexts)) as unknown as Tools;
}

/** Adds promises to a tool: what it would do, how to undo it, whether it happened. See `Promises`. */
export function gated<Foreign extends FunctionTool>(
  tool: Foreign,
  promises: Promises<InputOf<Foreign>, OutputOf<Foreign>>,
): Foreign {
  return addPromises(tool, promises);
}

type InputOf<Foreign extends FunctionTool> = Foreign["needsApproval"] extends (
  context: never,
  input: infer Input,
  callId?: string,
) => unknown
  ? Input
  : JsonObject;

/** Known from an output schema. Without one the framework calls every result a text, whatever it is; its exceptions are texts too. */
type OutputOf<Foreign extends FunctionTool> =
  Awaited<ReturnType<Foreign["invoke"]>> extends infer Result
    ? [Exclude<Result, string>] extends [never]
      ? unknown
      : Exclude<Result, string>
    : never;

/** The `RunState` of a stopped run, as far as it is used here. */
interface StoppedRun {
  getInterruptions(): readonly { readonly rawItem: object }[];
  approve(item: never): void;
  reject(item: never, options: { message: string }): void;
}

/**
 * Continues every run whose answers are in, each once, however many processes do so, and returns their ids. Their answers are
 * written into the state, ready for the next `run(agent, state)`; nothing is written before all of them are in, because an
 * interruption is used up by its answer. Call it after a start and periodically.
 */
export function resume<Run extends { readonly run: string; readonly state: StoppedRun }>(
  gate: Gate,
  runs: Iterable<Run> | AsyncIterable<Run>,
  proceed: (run: Run) => Promise<void>,
): Promise<readonly string[]> {
  const callsOf = ({ state }: Run) => state.getInterruptions().map(callIdOf);
  return resumeAll(gate, runs, callsOf, (stopped, answers) => {
    const { state } = stopped;
    for (const [index, item] of state.getInterruptions().entries()) {
      const answer = answers[index];
      // A no is final. Everything else is for `invoke` to find out: it asks the gate again.
      if (answer?.answer === "denied") state.reject(item as never, { message: answer.text });
      else state.approve(item as never);
    }
    return proceed(stopped);
  });
}

function callIdOf({ rawItem }: { readonly rawItem: object }): string {
  return "callId" in rawItem ? String(rawItem.callId) : "";
}

/** What the framework makes of an exception or a time-out by default, as if it were the tool's result. */
const SWALLOWED =
  /^(An error occurred while running the tool\. Please try again\.|Tool '.*' timed out after \d+ms\.)$/;

function readTool(tool: FunctionTool, contexts: ReadonlyMap<string, unknown>): ForeignTool {
  const { name, description, parameters, type } = tool;
  if (type !== "function" || typeof tool.invoke !== "function") {
    const hint = `"${String(name)}" is no function tool, so it runs elsewhere and the gate would not see it. Leave it out of gateTools.`;
    throw new SallyportError("invalid_input", { tool: String(name), hint });
  }
  return {
    source: tool,
    name,
    description,
    input: structuredClone(parameters) as JsonObject,
    async execute(input, { callId, signal }) {
      const details = { toolCall: { callId, name, type: "function_call" }, signal };
      const context = contexts.get(callId) ?? { context: {} };
      const output = await tool.invoke(context as never, JSON.stringify(input), details as never);
      // Taken for a result, an exception would count as a success.
      if (typeof output === "string" && SWALLOWED.test(output)) throw new Error(output);
      return output;
    },
  };
}

function throughGate(
  tool: FunctionTool,
  run: GatedRun,
  contexts: Map<string, unknown>,
): FunctionTool {
  const { name } = tool;
  return {
    ...tool,
    async needsApproval(context: unknown, input: unknown, callId = "") {
      contexts.set(callId, context);
      return (await run.waits({ id: callId, tool: name, input })) !== undefined;
    },
    async invoke(context: unknown, input: string, details: CallDetails = {}) {
      const id = details.toolCall?.callId ?? "";
      contexts.set(id, context);
      const answer = await run.answer({ id, tool: name, input, signal: details.signal });
      contexts.delete(id);
      await run.refuseIfOpen(answer);
      return resultOfAnswer(answer);
    },
  } as FunctionTool;
}
