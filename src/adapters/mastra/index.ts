// The framework itself is not imported: a tool, its context and a suspended run are small enough to be described by their shapes.

import type { Gate } from "../../gate/create-gate.ts";
import { SallyportError } from "../../model/errors.ts";
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

/** What `createTool` of `@mastra/core` returns, as far as it is used here. */
interface MastraTool {
  readonly description: string;
  /** A schema of zod. */
  readonly inputSchema?: unknown;
  readonly suspendSchema?: unknown;
  readonly execute?: ((input: never, context: never) => Promise<unknown>) | undefined;
}

/** What a tool gets from the agent that calls it. */
interface ToolContext {
  readonly runId?: string;
  readonly abortSignal?: AbortSignal;
  readonly requestContext?: { get(name: string): unknown };
  readonly agent?: {
    readonly toolCallId: string;
    readonly suspend: (payload: unknown) => Promise<unknown>;
  };
}

/**
 * The same tools, each of whose calls goes through the gate:
 *
 *     const tools = gateTools(gate, { lookupInvoice, refund }, { agent: "billing", readOnly: ["lookupInvoice"] });
 *     const agent = new Agent({ id: "billing", name: "billing", instructions, model, tools });
 *
 * A call that a person has to decide about suspends the run, which needs a storage; resumed before the answer is there, it
 * suspends again. The run of a call is the framework's `runId`. Throws invalid_input for a tool that the gate cannot execute.
 */
export function gateTools<Tools extends Readonly<Record<string, MastraTool>>>(
  gate: Gate,
  tools: Tools,
  options: Omit<RunOptions, "run">,
): Tools {
  registerTools(gate, Object.entries(tools).map(readTool), options.readOnly);
  const wrapped = Object.entries(tools).map(([name, tool]) => {
    const own = { execute: throughGate(gate, name, options) };
    return [name, Object.assign(Object.create(Object.getPrototypeOf(tool)), tool, own)];
  });
  return Object.fromEntries(wrapped) as Tools;
}

/** Adds promises to a tool: what it would do, how to undo it, whether it happened. See `Promises`. */
export function gated<Foreign extends MastraTool>(
  tool: Foreign,
  promises: Promises<InputOf<Foreign>, OutputOf<Foreign>>,
): Foreign {
  return addPromises(tool, promises);
}

type Execute<Foreign extends MastraTool> = NonNullable<Foreign["execute"]>;
type InputOf<Foreign extends MastraTool> = Parameters<Execute<Foreign>>[0];
/** What a schema refused is an error here, and a gated tool does not suspend by itself. */
type OutputOf<Foreign extends MastraTool> = Exclude<
  Awaited<ReturnType<Execute<Foreign>>>,
  // biome-ignore lint/suspicious/noConfusingVoidType: the framework's word for a tool that suspended
  { readonly validationErrors: unknown } | void
>;

/** The entry of a request context that names the run of the parent. */
const RUN = "sallyport.run";

/** What a delegation to a sub-agent shows, as far as it is used here. */
interface DelegationStart {
  readonly runId: string;
  readonly requestContext: {
    has(name: string): boolean;
    set(name: string, value: unknown): unknown;
  };
}

/**
 * For the options of `stream`, `generate` and `resumeStream` of an agent with sub-agents: their calls belong to the run of the
 * agent, so one rollback reaches them. Left out: each delegation is a run of its own.
 *
 *     await agent.stream("Refund invoice 2041", { runId: "chat-20", delegation: inSameRun });
 */
export const inSameRun = {
  onDelegationStart({ runId, requestContext }: DelegationStart): void {
    if (!requestContext.has(RUN)) requestContext.set(RUN, runId);
  },
};

/** An agent, as far as it is used here: it finds its suspended runs in the storage. */
interface SuspendingAgent {
  listSuspendedRuns(): Promise<{
    readonly runs: readonly {
      readonly runId: string;
      readonly toolCalls: readonly {
        readonly toolCallId?: string;
        readonly suspendPayload?: unknown;
      }[];
    }[];
  }>;
}

/** What a gated tool suspends with. A sub-agent's call suspends its parent with it too, so both know where the answer is. */
interface Suspension {
  readonly run: string;
  readonly callId: string;
}

/**
 * Continues every suspended run of the agent whose answers are in, each once, however many processes do so, and returns their
 * ids. `proceed` is called for each suspended call of a run, one after the other; after the last one the run continues:
 *
 *     await resume(gate, agent, async (call) => {
 *       const stream = await agent.resumeStream({}, call);
 *       await stream.consumeStream();
 *     });
 *
 * An agent's runs include the calls of its sub-agents, so only the agent at the top is resumed.
 */
export async function resume(
  gate: Gate,
  agent: SuspendingAgent,
  proceed: (call: { readonly runId: string; readonly toolCallId: string }) => Promise<void>,
): Promise<readonly string[]> {
  const { runs } = await agent.listSuspendedRuns();
  const paused = runs.flatMap(({ runId, toolCalls }) => {
    const calls = toolCalls.map(({ toolCallId = "", suspendPayload }) => ({
      runId,
      toolCallId,
      ...suspensionOf(suspendPayload, runId),
    }));
    const byRun = Map.groupBy(calls, ({ run }) => run);
    return [...byRun].map(([run, ofRun]) => ({ run, calls: ofRun }));
  });
  return resumeAll(
    gate,
    paused,
    ({ calls }) => calls.map(({ callId }) => callId),
    async ({ calls }) => {
      for (const { runId, toolCallId } of calls) await proceed({ runId, toolCallId });
    },
  );
}

/** Without a call id where a call is suspended for another reason: the gate knows no such call, so its run stays as it is. */
function suspensionOf(payload: unknown, runId: string): Suspension {
  const { run = runId, callId = "" } = (payload ?? {}) as Partial<Suspension>;
  return { run: String(run), callId: String(callId) };
}

function readTool([name, tool]: readonly [string, MastraTool]): ForeignTool {
  const { execute, suspendSchema, inputSchema, description } = tool;
  if (execute === undefined || suspendSchema !== undefined) {
    const why = execute === undefined ? "has no execute" : "suspends by itself";
    const hint = `"${name}" ${why}, so the gate cannot execute it. Leave it out of gateTools.`;
    throw new SallyportError("invalid_input", { tool: name, hint });
  }
  const nothing = { type: "object", properties: {}, additionalProperties: false };
  return {
    source: tool,
    name,
    description,
    input: (inputSchema ?? nothing) as StandardSchema | JsonObject,
    async execute(input, { callId, signal }) {
      const context = { abortSignal: signal, agent: { toolCallId: callId, messages: [] } };
      const output = await execute(input as never, context as never);
      // The framework returns what a schema does not accept as if it were a result.
      const isRefused =
        typeof output === "object" && output !== null && "validationErrors" in output;
      if (isRefused)
        throw new Error(`${name} refused its input or output: ${JSON.stringify(output)}`);
      return output;
    },
  };
}

function throughGate(gate: Gate, tool: string, options: Omit<RunOptions, "run">) {
  return async (input: unknown, context: ToolContext) => {
    const { runId, agent, abortSignal: signal, requestContext } = context;
    if (runId === undefined || agent === undefined) {
      const hint = "A gated tool is called by an agent: only there can a call wait for days.";
      throw new SallyportError("invalid_input", { tool, hint });
    }
    const id = agent.toolCallId;
    const run = String(requestContext?.get(RUN) ?? runId);
    const answer = await openRun(gate, { ...options, run }).answer({ id, tool, input, signal });
    if (answer.answer === "pending") {
      const { text, decisionId, interactionId } = answer;
      return agent.suspend({ text, decisionId, interactionId, run, callId: id });
    }
    if (answer.answer !== "done") throw new Error(answer.text);
    return resultOfAnswer(answer);
  };
}
