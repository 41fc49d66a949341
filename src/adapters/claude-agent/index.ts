// The framework itself is not imported: a tool, a hook and a deferred call are small enough to be described by their shapes.

import { z } from "zod";
import type { Gate } from "../../gate/create-gate.ts";
import type { Session } from "../../gate/session.ts";
import type { CallAnswer, EditedCall } from "../../model/operation.ts";
import { canonicalJson } from "../../util/canonical-json.ts";
import { errorText } from "../../util/error-text.ts";
import { sha256Hex } from "../../util/hash.ts";
import type { JsonObject } from "../../util/json.ts";
import {
  addPromises,
  type ForeignTool,
  keyOf,
  openRun,
  type Promises,
  type RunOptions,
  registerHostTool,
  registerTools,
  resumeAll,
} from "../gate-tools.ts";

export type { Promises } from "../gate-tools.ts";

/** What `tool()` of the Claude Agent SDK returns, as far as it is used here. */
interface SdkTool {
  readonly name: string;
  readonly description: string;
  /** The fields of a zod object. */
  readonly inputSchema: unknown;
  /** Its result is that of a tool of MCP. */
  readonly handler: (input: never, extra: unknown) => Promise<unknown>;
}

interface ToolOutput {
  content: { type: string; text?: string }[];
  isError?: boolean;
}

/** Where Claude Code says which call it is. */
const TOOL_USE_ID = "claudecode/toolUseId";
interface ToolExtra {
  readonly _meta?: { readonly [TOOL_USE_ID]?: string };
}

export interface ClaudeOptions extends RunOptions {
  /** Tools of Claude Code itself, such as Bash and Edit: it executes them, each call under a permit. */
  readonly hostTools?: readonly string[];
  /** How long such a call may take without a report before people are asked what happened. Left out: 15 minutes. */
  readonly permitMs?: number;
  /** The name under which the server with these tools is among `mcpServers`. Left out: `sallyport`. */
  readonly server?: string;
}

/** What the hooks read of their input. */
interface HookInput {
  readonly tool_name: string;
  readonly tool_input: JsonObject;
  readonly tool_use_id: string;
  readonly tool_response?: unknown;
  readonly error?: string;
  readonly is_interrupt?: boolean;
  /** Of a sub-agent. */
  readonly agent_type?: string;
}

/**
 * Hooks and tools for one run of Claude Code, which is asked through the Claude Agent SDK:
 *
 *     const { hooks, tools } = gateClaude(gate, [refund], { agent: "billing", run, hostTools: ["Bash"], readOnly: ["Read"] });
 *     const sallyport = createSdkMcpServer({ name: "sallyport", tools });
 *     for await (const message of query({ prompt, options: { hooks, mcpServers: { sallyport } } })) …
 *
 * The hooks ask the gate about every tool call of Claude Code. A call that a person has to decide about is deferred, which ends
 * the query; a tool that is not named here is denied, and so is everything while the gate fails.
 */
export function gateClaude<const Tools extends readonly SdkTool[]>(
  gate: Gate,
  tools: Tools,
  { hostTools = [], readOnly = [], permitMs, server = "sallyport", ...options }: ClaudeOptions,
) {
  const { agent, delegatedBy = [] } = options;
  const names = tools.map(({ name }) => name);
  const reading = readOnly.filter((name) => !names.includes(name));
  registerTools(gate, [...tools.map(readTool), ...reading.map(readByHost)], readOnly);
  for (const name of hostTools) registerHostTool(gate, name, `The tool ${name} of Claude Code.`);
  const main = openRun(gate, options);
  const terms = { by: `claude-code:${main.id}`, leaseMs: permitMs ?? PERMIT_MS };
  /** By the id that Claude Code gave the call: those that its hook let through, and those that it executes under a permit. */
  const passed = new Map<string, () => Promise<CallAnswer>>();
  const permitted = new Map<string, Permitted>();
  /** Claude Code keeps one deferred call of a turn and forgets the others. */
  let deferred: string | undefined;

  async function before(input: HookInput): Promise<HookOutput> {
    const { tool_name: given, tool_input, tool_use_id: id, agent_type: sub } = input;
    const isOurs = given.startsWith(`mcp__${server}__`);
    const tool = isOurs ? given.slice(`mcp__${server}__`.length) : given;
    if (!(isOurs ? names : [...hostTools, ...reading]).includes(tool)) {
      return deny(`The gate does not know the tool ${given}. Name it in hostTools or readOnly.`);
    }
    const isMain = sub === undefined;
    if (isMain && deferred !== undefined && deferred !== id && !readOnly.includes(tool)) {
      return deny("Another call of this turn waits for a person. Make this one again after it.");
    }
    // A sub-agent cannot be deferred: told to ask later it makes a new call. So its calls are known by what they ask for.
    const call = {
      id: isMain ? id : sha256Hex(canonicalJson([sub, tool, tool_input])),
      tool,
      input: tool_input,
    };
    const chain = { agent: sub ?? agent, delegatedBy: [agent, ...delegatedBy], run: main.id };
    const run = isMain ? main : openRun(gate, { ...options, ...chain });
    // A call that is deferred a second time is lost, so the model gets the answer that it waits.
    const key = keyOf(main.id, call.id);
    const isKnown = (await run.session.resultOf(key)) !== undefined;
    const answer = hostTools.includes(tool)
      ? await run.session.permit({ callId: call.id, key, tool, input: call.input }, terms)
      : ((await run.waits(call)) ?? PASSED);
    if (answer.answer === "pending" && (await run.isOpen(answer))) {
      if (!isMain || isKnown) return deny(answer.text);
      deferred = id;
      return decided("defer", answer.text);
    }
    deferred = undefined;
    if (isOurs) {
      passed.set(id, () => run.answer(call));
      return decided("allow");
    }
    if (answer.answer === "permitted") {
      permitted.set(id, { session: run.session, key, edited: answer.edited });
      // Claude Code executes it: once, with the input that was approved.
      return decided("allow", "", { updatedInput: answer.permit.calls?.[0]?.input as JsonObject });
    }
    const { answer: became, text } = answer === PASSED ? await run.answer(call) : answer;
    return became === "done" && reading.includes(tool) ? decided("allow") : deny(text);
  }

  async function after(input: HookInput): Promise<HookOutput> {
    const { tool_use_id: id, tool_response = "", error, is_interrupt } = input;
    const held = permitted.get(id);
    permitted.delete(id);
    // An interrupted call may have acted: nothing is reported, and people are asked when the lease is over.
    if (held === undefined || is_interrupt === true) return {};
    const output =
      typeof tool_response === "string" ? tool_response : JSON.stringify(tool_response);
    const outcome =
      error === undefined
        ? ({ outcome: "executed", output } as const)
        : ({ outcome: "failed", reason: error } as const);
    await held.session.report(held.key, { by: terms.by, ...outcome });
    const hookEventName = error === undefined ? "PostToolUse" : "PostToolUseFailure";
    return held.edited === undefined
      ? {}
      : { hookSpecificOutput: { hookEventName, additionalContext: noteOf(held.edited) } };
  }

  async function handle(extra: ToolExtra): Promise<ToolOutput> {
    const id = extra._meta?.[TOOL_USE_ID] ?? "";
    const answer = await passed.get(id)?.();
    passed.delete(id);
    const text = answer?.text ?? "Not executed: the hooks of gateClaude are not among the options.";
    const isDone = answer?.answer === "done";
    const plain = isDone && answer.edited === undefined ? answer.data : undefined;
    return (plain as ToolOutput) ?? { content: [{ type: "text", text }], isError: !isDone };
  }

  const reporting = [{ hooks: [(input: object) => after(input as HookInput)] }];
  /** One after the other: which call of a turn is deferred must be known before the next one. */
  let asked: Promise<HookOutput> = Promise.resolve({});
  const asking = (input: object) => {
    // An exception would let the call run.
    const next = () => before(input as HookInput).catch((error: unknown) => deny(errorText(error)));
    asked = asked.then(next);
    return asked;
  };
  return {
    /** For the options of `query`. */
    hooks: {
      PreToolUse: [{ hooks: [asking], onFailure: "block" as const }],
      PostToolUse: reporting,
      PostToolUseFailure: reporting,
    },
    /** For `createSdkMcpServer`. */
    tools: tools.map((tool) => ({
      ...tool,
      handler: (_: never, extra: unknown) => handle(extra as ToolExtra),
    })) as unknown as Tools,
  };
}

type HookOutput =
  | Record<string, never>
  | {
      hookSpecificOutput:
        | {
            hookEventName: "PreToolUse";
            permissionDecision: "allow" | "deny" | "defer";
            permissionDecisionReason: string;
            updatedInput?: JsonObject;
          }
        | { hookEventName: "PostToolUse" | "PostToolUseFailure"; additionalContext: string };
    };

function decided(
  permissionDecision: "allow" | "deny" | "defer",
  permissionDecisionReason = "",
  more: { updatedInput?: JsonObject } = {},
) {
  const hookEventName = "PreToolUse" as const;
  const verdict = { hookEventName, permissionDecision, permissionDecisionReason, ...more };
  return { hookSpecificOutput: verdict };
}

const deny = (reason: string) => decided("deny", reason);

/** A call that Claude Code executes. */
interface Permitted {
  readonly session: Session;
  readonly key: string;
  readonly edited: EditedCall | undefined;
}

/** The gate executes it, or has recorded it: nothing waits. */
const PASSED: { readonly answer: "passed"; readonly text: "" } = { answer: "passed", text: "" };

function noteOf({ by, input, original }: EditedCall): string {
  return `${by.join(" and ")} changed your call: ${JSON.stringify(input)} instead of ${JSON.stringify(original)}.`;
}

/** Longer than Claude Code lets a command run. Without a report by then, people are asked what happened. */
const PERMIT_MS = 15 * 60_000;

/** Adds promises to a tool: what it would do, how to undo it, whether it happened. See `Promises`. */
export function gated<Foreign extends SdkTool>(
  tool: Foreign,
  promises: Promises<Parameters<Foreign["handler"]>[0], Awaited<ReturnType<Foreign["handler"]>>>,
): Foreign {
  return addPromises(tool, promises);
}

/**
 * Continues every run whose answer is in, each once, however many processes do so, and returns their ids. `deferred` is the
 * `deferred_tool_use` of the result that ended the query; `proceed` continues it with `continueQuery`.
 */
export function resume<
  Run extends { readonly run: string; readonly deferred: { readonly id: string } },
>(
  gate: Gate,
  runs: Iterable<Run> | AsyncIterable<Run>,
  proceed: (run: Run) => Promise<void>,
): Promise<readonly string[]> {
  return resumeAll(gate, runs, ({ deferred }) => [deferred.id], proceed);
}

/** Says nothing, and makes Claude Code try a deferred call again. */
const NUDGE = {
  type: "user" as const,
  message: { role: "user" as const, content: "" },
  parent_tool_use_id: null,
};

/**
 * The messages of a query that continues a deferred call:
 *
 *     for await (const message of continueQuery((prompt) => query({ prompt, options: { ...options, resume } }))) …
 *
 * Claude Code tries the call when it starts, and again when it hears of the user. Before the tools of this process are connected
 * the call is not there, and while the call runs a prompt would interrupt it, so it hears of the user only after a failed try.
 */
export async function* continueQuery<Message extends { readonly type: string }>(
  ask: (prompt: AsyncIterable<typeof NUDGE>) => AsyncIterable<Message>,
): AsyncGenerator<Message> {
  let user: ReadableStreamDefaultController<typeof NUDGE> | undefined;
  const prompt = new ReadableStream<typeof NUDGE>({
    start(controller) {
      user = controller;
    },
  });
  for await (const message of ask(prompt)) {
    if (message.type === "result") {
      if ("stop_reason" in message && message.stop_reason === "tool_deferred_unavailable") {
        user?.enqueue(NUDGE);
        continue;
      }
      user?.close();
      user = undefined;
    }
    yield message;
  }
}

function readTool(tool: SdkTool): ForeignTool {
  const { name, description, inputSchema, handler } = tool;
  return {
    source: tool,
    name,
    description,
    input: z.object(inputSchema as z.ZodRawShape),
    async execute(input, { callId, signal }) {
      const extra = { signal, _meta: { [TOOL_USE_ID]: callId } };
      const output = (await handler(input as never, extra)) as ToolOutput;
      const text = output.content.map((part) => part.text ?? `[${part.type}]`).join("\n");
      return output.isError === true ? { text, isError: true } : { text, data: output };
    },
  };
}

/** Claude Code reads by itself; the gate judges and records that it was asked for. */
function readByHost(name: string): ForeignTool {
  const description = `The tool ${name} of Claude Code.`;
  const execute = () => "Left to Claude Code.";
  return { source: execute, name, description, input: { type: "object" }, execute };
}
