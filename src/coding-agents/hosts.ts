// What each coding agent sends to a hook and what it accepts as an answer. The shapes are exact: a field too many, a missing
// reason or a line of log output makes most hosts ignore the answer and run the tool. See docs/decisions/2026-11-18-coding-agents.md.

import { isJsonObject, type JsonObject } from "../util/json.ts";

export const HOST_NAMES = ["claude-code", "codex", "gemini", "opencode"] as const;
export type HostName = (typeof HOST_NAMES)[number];

/** One event of a host, in the same terms for all of them. */
export interface HostEvent {
  /** `before` a tool runs, `after` it ran, `end` of a turn, so nothing runs; everything else is `other` and is not gated. */
  readonly when: "before" | "after" | "end" | "other";
  readonly session: string;
  /** The host's id of the call; made from its content where the host has none. */
  readonly callId: string | undefined;
  readonly tool: string;
  readonly input: JsonObject;
  readonly cwd: string;
  /** The sub-agent of the host that makes the call. */
  readonly agent: string | undefined;
  /** What the tool answered, as text. */
  readonly output: string;
  /** The tool failed, with this text. */
  readonly error: string | undefined;
  /** A person ended it while it ran: nobody knows how far it came. */
  readonly isInterrupted: boolean;
}

export type HostAnswer =
  | { readonly decision: "allow"; readonly reason: string; readonly input?: JsonObject }
  | { readonly decision: "deny"; readonly reason: string }
  /** Only for a host that can keep one call and end; see `HostShape.canDefer`. */
  | { readonly decision: "defer"; readonly reason: string };

export interface HostShape {
  readonly name: HostName;
  /** Throws for input that is not this host's. */
  read(given: JsonObject): HostEvent;
  answer(answer: HostAnswer): JsonObject;
  /** The answer to an event after the call: words for the model, or nothing. */
  note(text: string, event: JsonObject): JsonObject;
  /** How long a person is waited for by default. A host that has no other way to ask needs some patience. */
  readonly waitMs: number;
  /** Whether this run can be stopped at a call and continued later. */
  canDefer(env: NodeJS.ProcessEnv): boolean;
}

function text(given: JsonObject, name: string): string {
  const value = given[name];
  if (typeof value === "string" && value !== "") return value;
  throw new Error(`its input has no ${name}`);
}

function object(given: JsonObject, name: string): JsonObject {
  const value = given[name];
  if (isJsonObject(value)) return value;
  throw new Error(`its input has no ${name}`);
}

function optional(given: JsonObject, name: string): string | undefined {
  const value = given[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

const plain = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);

const CLAUDE_EVENTS: Readonly<Record<string, HostEvent["when"]>> = {
  PreToolUse: "before",
  PostToolUse: "after",
  PostToolUseFailure: "after",
  Stop: "end",
};

/** Claude Code and Codex name the events and fields alike. */
function readClaude(given: JsonObject): HostEvent {
  const event = text(given, "hook_event_name");
  const when = CLAUDE_EVENTS[event] ?? "other";
  const isTool = when === "before" || when === "after";
  return {
    when,
    session: text(given, "session_id"),
    callId: isTool ? text(given, "tool_use_id") : undefined,
    tool: isTool ? text(given, "tool_name") : "",
    input: isTool ? object(given, "tool_input") : {},
    cwd: text(given, "cwd"),
    agent: optional(given, "agent_type"),
    output: plain(given["tool_response"]),
    error: event === "PostToolUseFailure" ? (optional(given, "error") ?? "It failed.") : undefined,
    isInterrupted: given["is_interrupt"] === true,
  };
}

function claudeAnswer(answer: HostAnswer): JsonObject {
  const updatedInput = answer.decision === "allow" ? answer.input : undefined;
  return {
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: answer.decision,
      permissionDecisionReason: answer.reason,
      ...(updatedInput === undefined ? {} : { updatedInput }),
    },
  };
}

function claudeNote(additionalContext: string, event: JsonObject): JsonObject {
  const hookEventName = plain(event["hook_event_name"]);
  return additionalContext === ""
    ? {}
    : { hookSpecificOutput: { hookEventName, additionalContext } };
}

const claudeCode: HostShape = {
  name: "claude-code",
  read: readClaude,
  answer: claudeAnswer,
  note: claudeNote,
  waitMs: 60_000,
  // In a session with a person in front of it `defer` counts as no answer, and the tool runs.
  canDefer: (env) => env["CLAUDE_CODE_SESSION_ATTENDED"] === "0",
};

const codex: HostShape = {
  name: "codex",
  read: readClaude,
  answer: (answer) =>
    claudeAnswer(answer.decision === "defer" ? { ...answer, decision: "deny" } : answer),
  note: claudeNote,
  waitMs: 30_000,
  canDefer: () => false,
};

const gemini: HostShape = {
  name: "gemini",
  read(given) {
    const event = text(given, "hook_event_name");
    const when = event === "BeforeTool" ? "before" : event === "AfterTool" ? "after" : "other";
    const isTool = when !== "other";
    const response = given["tool_response"];
    const failed = isJsonObject(response) ? response["error"] : undefined;
    return {
      when,
      session: text(given, "session_id"),
      // Gemini does not name its calls.
      callId: undefined,
      tool: isTool ? text(given, "tool_name") : "",
      input: isTool ? object(given, "tool_input") : {},
      cwd: text(given, "cwd"),
      agent: undefined,
      output: plain(response),
      error: failed === undefined || failed === null ? undefined : plain(failed),
      isInterrupted: false,
    };
  },
  answer(answer) {
    const { reason } = answer;
    const decision = answer.decision === "allow" ? "allow" : "deny";
    const tool_input = answer.decision === "allow" ? answer.input : undefined;
    return tool_input === undefined
      ? { decision, reason }
      : { decision, reason, hookSpecificOutput: { hookEventName: "BeforeTool", tool_input } };
  },
  note: () => ({}),
  waitMs: 30_000,
  canDefer: () => false,
};

/** The plugin that `sallyport install opencode` writes speaks this, so the shape is ours. */
const opencode: HostShape = {
  name: "opencode",
  read(given) {
    const when = text(given, "when");
    if (when !== "before" && when !== "after") throw new Error("its input has no when");
    return {
      when,
      session: text(given, "session"),
      callId: text(given, "call"),
      tool: text(given, "tool"),
      input: object(given, "input"),
      cwd: text(given, "cwd"),
      agent: undefined,
      output: plain(given["output"]),
      error: undefined,
      isInterrupted: false,
    };
  },
  answer: ({ decision, reason, ...more }) => ({
    decision: decision === "allow" ? "allow" : "deny",
    reason,
    ...more,
  }),
  note: (said) => (said === "" ? {} : { note: said }),
  waitMs: 30_000,
  canDefer: () => false,
};

export const HOST_SHAPES: Readonly<Record<HostName, HostShape>> = {
  "claude-code": claudeCode,
  codex,
  gemini,
  opencode,
};

export function isHostName(name: unknown): name is HostName {
  return HOST_NAMES.includes(name as HostName);
}
