// What the adapters share: a tool of a framework becomes a tool of the gate, and each of its calls one keyed call of a session.
// The key makes a call idempotent, so an adapter may ask as often as its framework repeats or resumes a step.

import type { Gate } from "../gate/create-gate.ts";
import type { Session } from "../gate/session.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { CallAnswer } from "../model/operation.ts";
import {
  defineTool,
  type StandardSchema,
  type ToolInput,
  type ToolSheet,
} from "../tools/define-tool.ts";
import type { Registry } from "../tools/registry.ts";
import type { Tool } from "../tools/tool.ts";
import { definedFields } from "../util/defined-fields.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { systemTimers } from "../util/timers.ts";

export interface RunOptions {
  readonly agent: string;
  /**
   * One conversation or run of the agent. Every process that continues it passes the same id: then its calls find their
   * answers. Left out: a new id, and nothing can continue the run after this process.
   */
  readonly run?: string;
  /** Tools that only read: they run without asking a person. */
  readonly readOnly?: readonly string[];
  /** Who delegated to this agent, nearest first. */
  readonly delegatedBy?: readonly string[];
  /** The person on whose behalf it acts; they cannot approve what it asks for. */
  readonly owner?: string;
}

/** A tool of a framework, as its adapter reads it. */
export interface ForeignTool {
  /** The framework's own object, by which `gated` knows it. */
  readonly source: object;
  readonly name: string;
  readonly description: string;
  readonly input: ToolInput;
  /** Where the schema library cannot produce its JSON Schema. */
  readonly inputSchema?: JsonObject;
  execute(input: unknown, call: { readonly callId: string; readonly signal: AbortSignal }): unknown;
}

/** What `gated` can add to a tool; each one by itself makes the gate stricter about the tool, or more useful. */
export type Promises<Input, Output> = Pick<
  ToolSheet<StandardSchema<Input>, Output>,
  | "readOnly"
  | "safety"
  | "permissionClass"
  | "dryRun"
  | "undo"
  | "probe"
  | "stateVersion"
  | "resources"
  | "idempotency"
  | "undoOnly"
  | "version"
  | "continues"
> & {
  /** When it throws, nothing has happened. Left out: it may have happened, so a person is asked to look. */
  readonly failsByThrowing?: true;
};

const promises = new WeakMap<object, Promises<never, unknown>>();

/**
 * Adds promises to a tool of a framework, which stays the same object:
 *
 *     const refund = gated(refundTool, { undo: ({ output }) => ({ tool: "cancel", input: { id: output.id } }) });
 */
export function addPromises<Foreign extends object, Input, Output>(
  tool: Foreign,
  more: Promises<Input, Output>,
): Foreign {
  promises.set(tool, { ...promises.get(tool), ...more } as Promises<never, unknown>);
  return tool;
}

/** One run of an agent, as its adapter calls it. */
export interface GatedRun {
  readonly id: string;
  readonly session: Session;
  /** Asks the gate. The answer of a call that waits for a person: then the framework has to stop. Undefined: it goes on. */
  waits(call: GatedCall): Promise<PendingAnswer | undefined>;
  /** What became of the call; the gate is asked again, whatever the framework says about an approval. */
  answer(call: GatedCall): Promise<CallAnswer>;
  /** A person has yet to decide about it. */
  isOpen(answer: CallAnswer): Promise<boolean>;
  /**
   * Throws still_running when a person has yet to decide. For frameworks whose pauses are used up when a run goes on: one that
   * was made to go on too early, or whose target changed since the yes, fails instead and stays where its host keeps it.
   */
  refuseIfOpen(answer: CallAnswer): Promise<void>;
}

export type PendingAnswer = CallAnswer & { readonly answer: "pending" };

export interface GatedCall {
  /** The framework's id of the call, unique in its run. */
  readonly id: string;
  readonly tool: string;
  readonly input: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** Registers the tools with the gate. Throws invalid_input for a tool that cannot be gated. */
export function registerTools(
  gate: Gate,
  tools: readonly ForeignTool[],
  readOnly: readonly string[] = [],
): void {
  const names = tools.map(({ name }) => name);
  const unknown = readOnly.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const hint = `readOnly names "${unknown}", which is not among the tools.`;
    throw new SallyportError("invalid_input", { tool: unknown, hint });
  }
  for (const tool of tools) register(gate.tools, toolOf(tool, readOnly.includes(tool.name)));
}

/** Registers a tool that the host of the agent executes, under a permit for each call. */
export function registerHostTool(gate: Gate, name: string, description: string): void {
  const input = { type: "object" } as const;
  const safety = { effect: "external" } as const;
  register(gate.tools, defineTool({ name, description, input, safety, execution: "external" }));
}

/** Opens the session of a run; a framework that names its runs itself opens one for each call. */
export function openRun(
  gate: Gate,
  { agent, run, delegatedBy, owner }: Omit<RunOptions, "readOnly">,
): GatedRun {
  const session = gate.sessions.open({ agent, ...definedFields({ id: run, delegatedBy, owner }) });
  // What the gate answered while the framework asked whether to stop. It executed the call then, so its data is only here.
  const answered = new Map<string, CallAnswer>();
  const ask = ({ id, tool, input, signal }: GatedCall) =>
    session.call(
      { callId: id, key: keyOf(session.id, id), tool, input: input as JsonValue },
      definedFields({ signal }),
    );
  const isOpen = async (answer: CallAnswer): Promise<boolean> =>
    answer.answer === "pending" &&
    (await gate.interactions.get(answer.interactionId)).status === "open";
  /** Decided, and another process is at it: its answer is worth a wait. False for what waits for a person. */
  const isUnderWay = async (answer: CallAnswer): Promise<boolean> => {
    if (answer.answer === "unknown") return answer.interactionId === undefined;
    return answer.answer === "pending" && !(await isOpen(answer));
  };

  async function askUntilSettled(call: GatedCall): Promise<CallAnswer> {
    const started = systemTimers.elapsedMs();
    for (;;) {
      const answer = await ask(call);
      const isLate = systemTimers.elapsedMs() - started > PATIENCE_MS;
      if (isLate || !(await isUnderWay(answer))) return answer;
      await systemTimers.sleep(ASK_EVERY_MS, call.signal);
    }
  }

  return {
    id: session.id,
    session,
    async waits(call) {
      const answer = await ask(call);
      if (answer.answer === "pending") return answer;
      // Another process is at it: what it will answer is not known yet, so it is asked for again.
      if (!(await isUnderWay(answer))) answered.set(call.id, answer);
      return undefined;
    },
    async answer(call) {
      const known = answered.get(call.id);
      answered.delete(call.id);
      return known ?? askUntilSettled(call);
    },
    isOpen,
    async refuseIfOpen(answer) {
      if (!(await isOpen(answer))) return;
      const hint =
        "A person has yet to decide. The run stays where it stopped; continue it with resume.";
      throw new SallyportError("still_running", { run: session.id, hint });
    },
  };
}

/** How long to wait for a call that another process executes; after that the model is asked to check later. */
const PATIENCE_MS = 30_000;
const ASK_EVERY_MS = 200;

/** The key of a call: the same in every process that continues the run. */
export function keyOf(run: string, callId: string): string {
  return `${run}:${callId}`;
}

/** Tools that adapters made; a later run of the same process replaces them, and nothing else is ever replaced. */
const ours = new WeakSet<Tool>();

function register(registry: Registry, tool: Tool): void {
  const before = registry.get(tool.name);
  if (before !== undefined && ours.has(before)) registry.unregister(tool.name);
  registry.register(tool);
  ours.add(tool);
}

function toolOf(foreign: ForeignTool, isReadOnly: boolean): Tool {
  const { source, name, description, input, inputSchema } = foreign;
  const { failsByThrowing, ...more } = promises.get(source) ?? {};
  const sheet: ToolSheet<ToolInput, unknown> = {
    name,
    description: description.trim() === "" ? `The tool ${name}.` : description,
    input,
    ...definedFields({ inputSchema }),
    ...(more as Partial<ToolSheet<ToolInput, unknown>>),
    ...(isReadOnly ? { readOnly: true as const } : {}),
    async execute({ input: checked, callId, signal }) {
      try {
        return await foreign.execute(checked, { callId, signal });
      } catch (error) {
        if (failsByThrowing !== true) throw error;
        return { text: errorText(error), isError: true };
      }
    },
  };
  return defineTool(sheet);
}

/**
 * Continues every run whose answers are in, one after the other, and returns their ids. A run that fails keeps no other one
 * waiting; what they threw comes out at the end. One whose target changed since the yes stays where it is: people are asked
 * again, and it is continued after their answer.
 */
export async function resumeAll<Run extends { readonly run: string }>(
  gate: Gate,
  runs: Iterable<Run> | AsyncIterable<Run>,
  callsOf: (run: Run) => readonly string[],
  proceed: (run: Run, answers: readonly CallAnswer[]) => Promise<void>,
): Promise<readonly string[]> {
  const continued: string[] = [];
  const errors: unknown[] = [];
  for await (const paused of runs) {
    const { run } = paused;
    const keys = callsOf(paused).map((callId) => keyOf(run, callId));
    try {
      const isOurs = await gate.resume({ run, keys }, (answers) => proceed(paused, answers));
      if (isOurs) continued.push(run);
    } catch (error) {
      if (!waitsAgain(error)) errors.push(error);
    }
  }
  if (errors.length > 1) throw new AggregateError(errors, `${errors.length} runs failed`);
  if (errors.length === 1) throw errors[0];
  return continued;
}

/** The OpenAI Agents SDK puts what a tool threw into the field `error`. */
function waitsAgain(error: unknown): boolean {
  const thrown = error instanceof Error && "error" in error ? error.error : error;
  return isSallyportError(thrown, "still_running");
}

/** What a framework gets as the result: the tool's own data, or the gate's text where that says more. */
export function resultOfAnswer(answer: CallAnswer): unknown {
  // What a person changed stands only in the text, and the model has to know it.
  const isPlain = answer.answer === "done" && answer.edited === undefined && "data" in answer;
  return isPlain ? answer.data : answer.text;
}

export function isOwnText(answer: CallAnswer): boolean {
  return answer.answer !== "done" || answer.edited !== undefined || !("data" in answer);
}
