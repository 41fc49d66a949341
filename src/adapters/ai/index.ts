import {
  asSchema,
  type InferToolInput,
  type InferToolOutput,
  type ModelMessage,
  type Tool,
  type ToolApprovalRequest,
  type ToolSet,
} from "ai";
import type { Gate } from "../../gate/create-gate.ts";
import { SallyportError } from "../../model/errors.ts";
import type { StandardSchema } from "../../tools/define-tool.ts";
import type { JsonObject } from "../../util/json.ts";
import {
  addPromises,
  type ForeignTool,
  type GatedRun,
  isOwnText,
  openRun,
  type Promises,
  type RunOptions,
  registerTools,
  resultOfAnswer,
  resumeAll,
} from "../gate-tools.ts";

export type { Promises, RunOptions } from "../gate-tools.ts";

type AiTool = ToolSet[string];

/**
 * The same tools, each of whose calls goes through the gate. For `generateText`, `streamText` and `ToolLoopAgent`:
 *
 *     const tools = gateTools(gate, { lookupInvoice, refund }, { agent: "billing", readOnly: ["lookupInvoice"] });
 *     const { content } = await generateText({ model, tools, prompt });
 *
 * A call that a person has to decide about stops the run with a `tool-approval-request`. Throws invalid_input for a tool that
 * runs outside this process: the gate would not see its calls.
 */
export function gateTools<Tools extends ToolSet>(
  gate: Gate,
  tools: Tools,
  options: RunOptions,
): Tools {
  registerTools(gate, Object.entries(tools).map(readTool), options.readOnly);
  const run = openRun(gate, options);
  const wrapped = Object.entries(tools).map(([name, tool]) => [name, throughGate(name, tool, run)]);
  return Object.fromEntries(wrapped) as Tools;
}

/** Adds promises to a tool: what it would do, how to undo it, whether it happened. See `Promises`. */
export function gated<Foreign extends Tool>(
  tool: Foreign,
  promises: Promises<InferToolInput<Foreign>, InferToolOutput<Foreign>>,
): Foreign {
  return addPromises(tool, promises);
}

/** A run that its host keeps while it waits. */
export interface PausedRun {
  readonly run: string;
  readonly messages: readonly ModelMessage[];
}

/**
 * Continues every run whose answers are in, each once, however many processes do so, and returns their ids. Call it after a
 * start and periodically. `messages` are those that were sent and then `responseMessages` of the result:
 *
 *     await resume(gate, await chats.paused(), async ({ run, messages }) => {
 *       const tools = gateTools(gate, { refund }, { agent: "billing", run });
 *       await chats.save(run, await generateText({ model, tools, messages }));
 *     });
 */
export function resume<Run extends PausedRun>(
  gate: Gate,
  runs: Iterable<Run> | AsyncIterable<Run>,
  proceed: (run: Run & { readonly messages: ModelMessage[] }) => Promise<void>,
): Promise<readonly string[]> {
  const callsOf = ({ messages }: Run) => openRequests(messages).map(({ toolCallId }) => toolCallId);
  return resumeAll(gate, runs, callsOf, (paused, answers) => {
    const content = openRequests(paused.messages).map(({ approvalId }, index) => {
      const answer = answers[index];
      const type = "tool-approval-response" as const;
      // A no is final. Everything else is for `execute` to find out: it asks the gate again.
      return answer?.answer === "denied"
        ? { type, approvalId, approved: false, reason: answer.text }
        : { type, approvalId, approved: true };
    });
    return proceed({ ...paused, messages: [...paused.messages, { role: "tool", content }] });
  });
}

/** Requests for approval that no later message answers. */
function openRequests(messages: readonly ModelMessage[]): readonly ToolApprovalRequest[] {
  const parts = partsOf(messages);
  const answered = new Set(
    parts.flatMap((part) => (part.type === "tool-approval-response" ? [part.approvalId] : [])),
  );
  return parts.filter(
    (part): part is ToolApprovalRequest =>
      part.type === "tool-approval-request" && !answered.has(part.approvalId),
  );
}

/** Of the model and of tools. */
function partsOf(messages: readonly ModelMessage[]) {
  return messages.flatMap(({ role, content }) =>
    typeof content === "string" || role === "user" || role === "system" ? [] : [...content],
  );
}

function readTool([name, tool]: readonly [string, AiTool]): ForeignTool {
  const { execute, inputSchema, description } = tool;
  if (execute === undefined) {
    const hint = `"${name}" has no execute, so it runs elsewhere and the gate would not see it. Leave it out of gateTools.`;
    throw new SallyportError("invalid_input", { tool: name, hint });
  }
  return {
    source: tool,
    name,
    description: typeof description === "string" ? description : "",
    ...schemaOf(name, inputSchema),
    async execute(input, { callId, signal }) {
      const options = { toolCallId: callId, messages: [], abortSignal: signal, context: {} };
      const output: unknown = await execute(input, options);
      return isStream(output) ? lastOf(output) : output;
    },
  };
}

/** A schema library's own schema where it is one, so that defaults and refinements apply; otherwise its JSON Schema. */
function schemaOf(name: string, given: unknown): Pick<ForeignTool, "input" | "inputSchema"> {
  const { jsonSchema } = asSchema(given as Parameters<typeof asSchema>[0]);
  if (jsonSchema instanceof Promise) {
    const hint = `The input schema of "${name}" is loaded later; the gate needs it now.`;
    throw new SallyportError("invalid_input", { tool: name, hint });
  }
  const inputSchema = structuredClone(jsonSchema) as JsonObject;
  const isStandard = typeof given === "object" && given !== null && "~standard" in given;
  return isStandard ? { input: given as StandardSchema, inputSchema } : { input: inputSchema };
}

function isStream(output: unknown): output is AsyncIterable<unknown> {
  return typeof output === "object" && output !== null && Symbol.asyncIterator in output;
}

async function lastOf(stream: AsyncIterable<unknown>): Promise<unknown> {
  let last: unknown;
  for await (const part of stream) last = part;
  return last;
}

interface ApprovalQuestion {
  readonly toolCallId: string;
  readonly messages: readonly ModelMessage[];
}

/** The run stopped at this call before, so it is being continued. */
function wasAsked(messages: readonly ModelMessage[], id: string): boolean {
  return partsOf(messages).some(
    (part) => part.type === "tool-approval-request" && part.toolCallId === id,
  );
}

function throughGate(name: string, tool: AiTool, run: GatedRun): AiTool {
  /** Calls whose result is the gate's text: the tool's own `toModelOutput` could not read it. */
  const asText = new Set<string>();
  const { toModelOutput } = tool;
  return {
    ...tool,
    // The SDK asks again before it executes what a message calls approved.
    async needsApproval(input: unknown, { toolCallId: id, messages }: ApprovalQuestion) {
      const pending = await run.waits({ id, tool: name, input });
      if (pending === undefined) return false;
      if (wasAsked(messages, id)) await run.refuseIfOpen(pending);
      return true;
    },
    async execute(input: unknown, options: { toolCallId: string; abortSignal?: AbortSignal }) {
      const { toolCallId: id, abortSignal: signal } = options;
      const answer = await run.answer({ id, tool: name, input, signal });
      if (answer.answer !== "done") throw new Error(answer.text);
      if (isOwnText(answer)) asText.add(id);
      return resultOfAnswer(answer);
    },
    ...(toModelOutput && {
      toModelOutput: (given: Parameters<typeof toModelOutput>[0]) =>
        asText.has(given.toolCallId)
          ? { type: "text" as const, value: String(given.output) }
          : toModelOutput(given),
    }),
  } as AiTool;
}
