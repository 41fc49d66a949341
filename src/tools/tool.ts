import type { JsonObject, JsonValue } from "../util/json.ts";
import type { Capability, ToolMetadata } from "./safety.ts";

import type { UndoRecord } from "./undo.ts";

/**
 * A typed action with a safety declaration. Nothing about display is part of it, and it takes no part in permission
 * checks. Made by `defineTool`; everything after `execute` is optional, so a plain tool stays three lines long.
 * Shapes: execute, dryRun, generateUndo, probe and stateVersion are callbacks; metadata and capability are pulled.
 */
export interface Tool {
  /** Unique, ASCII; `server.tool` for tools of other servers. */
  readonly name: string;
  /** May depend on the context and change between calls; asked for when a prompt is put together. */
  description(context: DescriptionContext): string;
  /** JSON Schema of the input, as the model gets it. */
  readonly inputSchema: JsonObject;
  /**
   * Checks input against the schema, strictly; what it does not accept never reaches `execute`. The value it gives is
   * what must be shown, hashed, kept and executed: it is JSON, holds everything the schema filled in or rewrote, and
   * parsing it again gives the same value.
   */
  parseInput(input: JsonValue): ParsedInput;
  execute(call: ToolCall): Promise<ToolResult>;
  /** Undefined when the tool declares none: then the safe defaults hold. */
  readonly metadata?: Partial<ToolMetadata>;
  readonly capability?: Partial<Capability>;
  /** What would happen, without it happening. */
  readonly dryRun?: (call: ToolCall) => Promise<DryRun>;
  /** How to take it back, from what went in and what came out. Called right after a success. */
  readonly generateUndo?: (call: ToolCall, result: ToolResult) => UndoRecord | Promise<UndoRecord>;
  /** Did it happen? Asked after a lost answer, before anything is repeated. */
  readonly probe?: (call: ToolCall) => Promise<ProbeAnswer>;
  /** Version of the target (ETag, row version, content hash): equal means nobody changed it. */
  readonly stateVersion?: (call: ToolCall) => Promise<string>;
  /** What this input touches; write scopes and permissions are checked against these. */
  readonly resources?: (
    input: unknown,
    context: { readonly workingDirectory: string },
  ) => readonly Resource[];
  /**
   * `keyed`: under one idempotency key the target does nothing twice, and what it answered under it stands, a no as well.
   * Return such a no with `isError`. What is thrown means that there was no answer, so after a lost call it settles nothing.
   */
  readonly idempotency?: "keyed" | "none";
  /** Refused as a call of its own: only a rollback may dispatch it. */
  readonly undoOnly?: true;
  /** Version of the code behind it; part of what an approval is bound to. */
  readonly version?: string;
  /** Versions whose pending calls this one may carry out, if wording and schema are all that was changed. */
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

/** One invocation as the tool sees it: checked input, and everything it may need around it. */
export interface ToolCall {
  readonly callId: string;
  readonly input: unknown;
  readonly context: ToolContext;
}

export interface ToolContext {
  readonly tenant: string;
  readonly sessionId: string;
  /** Aborted when the caller gives up or time is over. */
  readonly signal: AbortSignal;
  /** Empty when none is set: the tool then uses its own. */
  readonly workingDirectory: string;
  /**
   * Where the gate found the files and command folders that `resources` named, in that order, with all links resolved. A
   * tool opens these places and no others: a path that leads elsewhere by now was changed after it was judged. Undefined
   * when the call did not come through the gate.
   */
  readonly places?: readonly string[] | undefined;
  /** Shape: push; reaches the caller while the tool works. */
  progress(report: Progress): void;
  /** The same for every attempt at this step; empty for a dry run. */
  readonly idempotencyKey: string;
  /** Grows with every attempt; a target that remembers it can refuse late ones. */
  readonly fence: number;
}

export interface Progress {
  readonly message: string;
  /** 0 to 1, where it is known. */
  readonly done?: number;
}

export interface ToolResult {
  readonly text: string;
  readonly isError?: boolean;
  /** Handed through as it is: not copied, not serialised. */
  readonly data?: unknown;
  /** The tool's own undo record; without it `generateUndo` is asked. */
  readonly undo?: UndoRecord;
}

export interface DryRun {
  /** One line: what would be touched. */
  readonly summary: string;
  /** Details for people, for instance a unified diff. */
  readonly preview: string;
  /** Why what would happen cannot be inspected here. Reviewers read it, and the call counts as irreversible (T14). */
  readonly unavailable?: string;
  /** Free numbers and words about the impact; shown, never interpreted. */
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
