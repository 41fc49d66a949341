import type { JsonObject, JsonValue } from "../util/json.ts";
import type { Capability, ToolMetadata } from "./safety.ts";

import type { UndoRecord } from "./undo.ts";

/**
 * A typed action with a safety declaration. It contains nothing about display and takes no part in permission checks.
 * Created by `defineTool`; everything after `execute` is optional, so a plain tool is three lines long. Shapes:
 * execute, dryRun, generateUndo, probe and stateVersion are callbacks; metadata and capability are pulled.
 */
export interface Tool {
  /** Unique, ASCII; `server.tool` for tools of other servers. */
  readonly name: string;
  /** May depend on the context and change between calls; read when a prompt is built. */
  description(context: DescriptionContext): string;
  /** JSON Schema of the input for the model. */
  readonly inputSchema: JsonObject;
  /**
   * Validates input strictly; rejected input never reaches `execute`. The returned value is what must be shown, hashed,
   * stored and executed: it is JSON, contains all defaults and rewrites of the schema, and parsing it again gives the
   * same value.
   */
  parseInput(input: JsonValue): ParsedInput;
  execute(call: ToolCall): Promise<ToolResult>;
  /** Undefined when the tool declares none: then the safe defaults apply. */
  readonly metadata?: Partial<ToolMetadata>;
  readonly capability?: Partial<Capability>;
  /** Describes the effect without causing it. */
  readonly dryRun?: (call: ToolCall) => Promise<DryRun>;
  /** How to undo the call, from its input and output. Called right after a success. */
  readonly generateUndo?: (call: ToolCall, result: ToolResult) => UndoRecord | Promise<UndoRecord>;
  /** Whether the call took effect. Called after a lost answer, before any retry. */
  readonly probe?: (call: ToolCall) => Promise<ProbeAnswer>;
  /** Version of the target (ETag, row version, content hash): equal means unchanged. */
  readonly stateVersion?: (call: ToolCall) => Promise<string>;
  /** The resources that this input touches; write scopes and permissions are checked against them. */
  readonly resources?: (
    input: unknown,
    context: { readonly workingDirectory: string },
  ) => readonly Resource[];
  /**
   * `keyed`: for one idempotency key the target acts at most once, and its answer is final, also a refusal. Return a
   * refusal with `isError`. A throw means that there was no answer, so it settles nothing after a lost call.
   */
  readonly idempotency?: "keyed" | "none";
  /** Direct calls are refused: only a rollback may dispatch it. */
  readonly undoOnly?: true;
  /** Version of the implementation; an approval is bound to it. */
  readonly version?: string;
  /** Versions whose pending calls this one may execute, if only wording and schema changed. */
  readonly continues?: readonly string[];
}

export interface DescriptionContext {
  readonly workingDirectory: string;
}

export type ParsedInput =
  | { readonly ok: true; readonly value: JsonValue }
  | { readonly ok: false; readonly issues: readonly InputIssue[] };

export interface InputIssue {
  /** Like `$.items[3].price`; `$` for the whole. */
  readonly path: string;
  readonly message: string;
}

/** One invocation: the checked input and its context. */
export interface ToolCall {
  readonly callId: string;
  readonly input: unknown;
  readonly context: ToolContext;
}

export interface ToolContext {
  readonly tenant: string;
  readonly sessionId: string;
  /** Aborted when the caller gives up or the time limit passes. */
  readonly signal: AbortSignal;
  /** Empty when none is set: the tool then uses its own. */
  readonly workingDirectory: string;
  /**
   * The resolved places of the files and command folders in `resources`, in that order, with all links resolved by the
   * gate. A tool opens only these places: a path that now leads elsewhere was changed after it was judged. Undefined
   * when the call did not come through the gate.
   */
  readonly places?: readonly string[] | undefined;
  /** Shape: push; reaches the caller while the tool works. */
  progress(report: Progress): void;
  /** The same for every attempt of this step; empty for a dry run. */
  readonly idempotencyKey: string;
  /** Grows with every attempt; a target that remembers it can refuse late ones. */
  readonly fence: number;
}

export interface Progress {
  readonly message: string;
  /** 0 to 1, if known. */
  readonly done?: number;
}

export interface ToolResult {
  readonly text: string;
  readonly isError?: boolean;
  /** Passed through unchanged: not copied, not serialised. */
  readonly data?: unknown;
  /** The tool's own undo record; without it `generateUndo` is called. */
  readonly undo?: UndoRecord;
}

export interface DryRun {
  /** One line: what would be touched. */
  readonly summary: string;
  /** Details for people, for instance a unified diff. */
  readonly preview: string;
  /** Why the effect cannot be inspected. Shown to reviewers, and the call counts as irreversible (T14). */
  readonly unavailable?: string;
  /** Free-form facts about the impact; shown, never interpreted. */
  readonly impact: JsonObject;
}

export type ProbeAnswer =
  | { readonly happened: true; readonly result: ToolResult }
  | { readonly happened: false }
  | { readonly happened: "unknown"; readonly reason: string };

export type Resource =
  | { readonly kind: "file"; readonly path: string; readonly access: "read" | "write" }
  /** `directory`: where it runs, if that is not the call's working directory. */
  | { readonly kind: "command"; readonly command: string; readonly directory?: string }
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "other"; readonly id: string; readonly access: "read" | "write" };
