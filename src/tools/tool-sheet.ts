import type { JsonObject } from "../util/json.ts";
import type { ListingSheet, SafetySheet } from "./safety-sheet.ts";
import type { OutputOfSchema, StandardSchema } from "./standard-schema.ts";
import type { DescriptionContext, ProbeAnswer, Resource, ToolContext, ToolResult } from "./tool.ts";
import type { ToolInput } from "./tool-input.ts";
import type { DryRunSheet, OutputOf } from "./tool-result.ts";
import type { UndoRecipe } from "./undo.ts";

type Awaitable<Value> = Value | PromiseLike<Value>;

/** The checked input as the callbacks see it: typed by the schema, or any object for a plain JSON Schema. */
export type InputOf<Input extends ToolInput> = Input extends StandardSchema
  ? OutputOfSchema<Input>
  : JsonObject;

/** One call as the callbacks see it: the input and everything around it, side by side. */
export interface SheetCall<Input> extends ToolContext {
  readonly callId: string;
  readonly input: Input;
}

/** A call that succeeded, with what `execute` gave. */
export interface DoneCall<Input, Output> extends SheetCall<Input> {
  readonly output: Output;
  readonly result: ToolResult;
}

export type ProbeSheet<Answer> =
  | { readonly happened: true; readonly result: Answer }
  | Exclude<ProbeAnswer, { readonly happened: true }>;

/**
 * A tool as its author writes it down. `execute` stands before `undo` and `probe`, which take their types from it. All
 * functions are callbacks that the engine waits for; only `description`, `resources` are asked without waiting.
 */
export interface ToolSheet<Input extends ToolInput, Answer> extends ListingSheet {
  /** Unique; `server.tool` or `topic.verb`. */
  readonly name: string;
  readonly description: string | ((context: DescriptionContext) => string);
  readonly input: Input;
  /** The JSON Schema for the model, where the schema library cannot tell it. */
  readonly inputSchema?: JsonObject;
  /** Left out: nothing is claimed, so nothing is allowed for it. */
  readonly safety?: SafetySheet;
  readonly dryRun?: (call: SheetCall<InputOf<Input>>) => Awaitable<DryRunSheet>;
  readonly execute: (call: SheetCall<InputOf<Input>>) => Awaitable<Answer>;
  /** The call that takes this one back. Asked right after a success; it does not undo anything itself. */
  readonly undo?: (done: DoneCall<InputOf<Input>, OutputOf<Answer>>) => Awaitable<UndoRecipe>;
  readonly probe?: (call: SheetCall<InputOf<Input>>) => Awaitable<ProbeSheet<Answer>>;
  readonly stateVersion?: (call: SheetCall<InputOf<Input>>) => Awaitable<string>;
  readonly resources?: (asked: {
    readonly input: InputOf<Input>;
    readonly workingDirectory: string;
  }) => readonly Resource[];
  readonly idempotency?: "keyed" | "none";
  /** Only rollbacks call it; an agent that asks for it is refused. */
  readonly undoOnly?: true;
  /** Version of the code behind it. Change it when the behaviour changes: approvals are bound to it. */
  readonly version?: string;
  /**
   * Versions before this one whose pending calls it may carry out without being reviewed again: only wording and the input's
   * schema may have changed since, and it must read the input of the call as before.
   */
  readonly continues?: readonly string[];
}
