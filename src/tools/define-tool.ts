import { SallyportError } from "../model/errors.ts";
import { definedFields } from "../util/defined-fields.ts";
import { errorText } from "../util/error-text.ts";
import { deepFreeze, type JsonObject, type JsonValue } from "../util/json.ts";
import { nameProblem } from "./registry.ts";
import { type ListingSheet, readDeclarations, type SafetySheet } from "./safety.ts";
import type {
  DescriptionContext,
  DryRun,
  ProbeAnswer,
  Resource,
  Tool,
  ToolCall,
  ToolContext,
  ToolResult,
} from "./tool.ts";
import {
  inputError,
  type OutputOfSchema,
  readToolInput,
  type StandardSchema,
  type ToolInput,
} from "./tool-input.ts";
import type { UndoRecipe, UndoRecord } from "./undo.ts";

/**
 * Makes a tool from its data sheet:
 *
 *     export const refund = defineTool({
 *       name: "billing.refund",
 *       description: "Pays an invoice back, in full or in part.",
 *       input: z.object({ invoiceId: z.string(), cents: z.int().positive() }),
 *       safety: { effect: "external", reversible: true, confidenceMin: 80 },
 *       dryRun: ({ input }) => `would pay back ${input.cents} cents of ${input.invoiceId}`,
 *       execute: ({ input, idempotencyKey, signal }) => api.refund(input, { idempotencyKey, signal }),
 *       undo: ({ output }) => ({ tool: "billing.cancel_refund", input: { refundId: output.refundId } }),
 *     });
 *
 * Throws invalid_input when the sheet contradicts itself or cannot be kept to. The input is parsed again in front of every
 * callback, so that no path around the orchestrator brings in what does not fit.
 */
export function defineTool<const Input extends ToolInput, Answer>(
  sheet: ToolSheet<Input, Answer>,
): Tool {
  const { name, description, execute } = sheet;
  const hint = nameProblem(name) ?? sheetProblem(sheet);
  if (hint !== undefined) throw new SallyportError("invalid_input", { tool: String(name), hint });
  const { inputSchema, parseInput } = readToolInput(sheet.input, sheet.inputSchema);

  /** Throws invalid_input, for callbacks without a result to report it in. */
  const checkedInput = (input: unknown): InputOf<Input> => {
    const parsed = parseInput(input as JsonValue);
    if (parsed.ok) return parsed.value as InputOf<Input>;
    const hint = inputError(name, parsed.issues).text;
    throw new SallyportError("invalid_input", { tool: name, hint });
  };

  return Object.freeze({
    name,
    description: typeof description === "string" ? () => description : description,
    inputSchema,
    parseInput,
    async execute(call: ToolCall) {
      const parsed = parseInput(call.input as JsonValue);
      if (!parsed.ok) return inputError(name, parsed.issues);
      return toToolResult(await execute(sheetCall(call, parsed.value as InputOf<Input>)));
    },
    ...frozenParts(readDeclarations(name, sheet, { undo: sheet.undo !== undefined })),
    ...optionalContracts(sheet, checkedInput),
    ...definedFields({
      idempotency: sheet.idempotency,
      undoOnly: sheet.undoOnly === true ? (true as const) : undefined,
      version: sheet.version,
      continues: sheet.continues && Object.freeze([...sheet.continues]),
    }),
  });
}

/** An approved definition must not change afterwards. */
function frozenParts<Parts extends object>(parts: Parts): Parts {
  for (const part of Object.values(parts)) deepFreeze(part);
  return parts;
}

type Contracts = Pick<Tool, "dryRun" | "generateUndo" | "probe" | "stateVersion" | "resources">;

/** Only functions that the sheet has: their presence says what a tool can do. */
function optionalContracts<Input extends ToolInput, Answer>(
  { dryRun, undo, probe, stateVersion, resources }: ToolSheet<Input, Answer>,
  checkedInput: (input: unknown) => InputOf<Input>,
): Contracts {
  const checked = (call: ToolCall) => sheetCall(call, checkedInput(call.input));
  return {
    ...(dryRun && { dryRun: async (call) => toDryRun(await dryRun(checked(call))) }),
    ...(undo && {
      generateUndo: async (call, result) => {
        const output = outputOf(result) as OutputOf<Answer>;
        // `makeUndo` completes and checks the short form, and reports problems.
        return (await undo({ ...checked(call), output, result })) as UndoRecord;
      },
    }),
    ...(probe && {
      probe: async (call) => {
        const answer = await probe(checked(call));
        return answer.happened === true
          ? { ...answer, result: toToolResult(answer.result) }
          : answer;
      },
    }),
    ...(stateVersion && { stateVersion: async (call) => stateVersion(checked(call)) }),
    ...(resources && {
      resources: (input, { workingDirectory }) =>
        resources({ input: checkedInput(input), workingDirectory }),
    }),
  };
}

function sheetCall<Input>({ callId, context }: ToolCall, input: Input): SheetCall<Input> {
  const { tenant, sessionId, signal, workingDirectory, places, idempotencyKey, fence } = context;
  // Copied field by field: a context may hold more than tools should see, and `progress` may need its `this`.
  return {
    callId,
    input,
    tenant,
    sessionId,
    signal,
    workingDirectory,
    places,
    idempotencyKey,
    fence,
    progress: (report) => context.progress(report),
  };
}

type SheetFields = Partial<Readonly<Record<keyof ToolSheet<ToolInput, unknown>, unknown>>>;

const FUNCTIONS = ["dryRun", "undo", "probe", "stateVersion", "resources"] as const;

/** Run-time checks for sheets written in JavaScript. */
function sheetProblem(sheet: SheetFields): string | undefined {
  const { description, execute, idempotency, version, continues } = sheet;
  const isDescribed =
    typeof description === "function" ||
    (typeof description === "string" && description.trim() !== "");
  if (!isDescribed) return "A tool needs a description: the model chooses by it.";
  if (typeof execute !== "function") return "A tool needs execute.";
  const wrong = FUNCTIONS.find(
    (field) => sheet[field] !== undefined && typeof sheet[field] !== "function",
  );
  if (wrong !== undefined) return `${wrong} must be a function.`;
  if (idempotency !== undefined && idempotency !== "keyed" && idempotency !== "none") {
    return 'idempotency must be "keyed" or "none".';
  }
  if (version !== undefined && typeof version !== "string") return "version must be a text.";
  if (continues !== undefined && !isListOfTexts(continues)) {
    return "continues must be a list of versions.";
  }
  return undefined;
}

function isListOfTexts(list: unknown): boolean {
  return Array.isArray(list) && list.every((item) => typeof item === "string");
}

type Awaitable<Value> = Value | PromiseLike<Value>;

/** The checked input for the callbacks: typed by the schema, or any object for a plain JSON Schema. */
export type InputOf<Input extends ToolInput> = Input extends StandardSchema
  ? OutputOfSchema<Input>
  : JsonObject;

/** One call for the callbacks: the input and its context, side by side. */
export interface SheetCall<Input> extends ToolContext {
  readonly callId: string;
  readonly input: Input;
}

/** A successful call with the result of `execute`. */
export interface DoneCall<Input, Output> extends SheetCall<Input> {
  readonly output: Output;
  readonly result: ToolResult;
}

export type ProbeSheet<Answer> =
  | { readonly happened: true; readonly result: Answer }
  | Exclude<ProbeAnswer, { readonly happened: true }>;

/**
 * A tool as its author writes it. `execute` comes before `undo` and `probe`, which take their types from it. All
 * functions are callbacks that the engine waits for; only `description` and `resources` are synchronous.
 */
export interface ToolSheet<Input extends ToolInput, Answer> extends ListingSheet {
  /** Unique; `server.tool` or `topic.verb`. */
  readonly name: string;
  readonly description: string | ((context: DescriptionContext) => string);
  readonly input: Input;
  /** The JSON Schema for the model, where the schema library cannot produce it. */
  readonly inputSchema?: JsonObject;
  /** By default nothing is claimed, so nothing is allowed. */
  readonly safety?: SafetySheet;
  readonly dryRun?: (call: SheetCall<InputOf<Input>>) => Awaitable<DryRunSheet>;
  readonly execute: (call: SheetCall<InputOf<Input>>) => Awaitable<Answer>;
  /** The call that undoes this one. Called right after a success; it does not undo anything itself. */
  readonly undo?: (done: DoneCall<InputOf<Input>, OutputOf<Answer>>) => Awaitable<UndoRecipe>;
  readonly probe?: (call: SheetCall<InputOf<Input>>) => Awaitable<ProbeSheet<Answer>>;
  readonly stateVersion?: (call: SheetCall<InputOf<Input>>) => Awaitable<string>;
  readonly resources?: (asked: {
    readonly input: InputOf<Input>;
    readonly workingDirectory: string;
  }) => readonly Resource[];
  readonly idempotency?: "keyed" | "none";
  /** Only rollbacks call it; a call by an agent is refused. */
  readonly undoOnly?: true;
  /** The version of the implementation. Change it when the behaviour changes: approvals are bound to it. */
  readonly version?: string;
  /**
   * Earlier versions whose pending calls this one may execute without another review: only wording and the input schema
   * may have changed since, and it must parse the call's input as before.
   */
  readonly continues?: readonly string[];
}

/** A result in the gate's own form; `execute` of a tool sheet may also return any other value. */
interface SheetResult {
  readonly text: string;
  readonly isError?: boolean;
  readonly data?: unknown;
  readonly undo?: UndoRecipe;
}

/** The output of `execute` as `undo` sees it. */
type OutputOf<Answer> = [Answer] extends [string]
  ? string
  : [Answer] extends [SheetResult]
    ? "data" extends keyof Answer
      ? Answer["data"]
      : string
    : Answer;

type DryRunSheet = string | (Pick<DryRun, "summary"> & Partial<DryRun>);

/**
 * Converts any return value into a result: the model reads it as JSON, and code gets the same object. An object with a
 * `text` and only fields of a result is already one. Never throws, because the effect has already happened.
 */
function toToolResult(answer: unknown): ToolResult {
  if (typeof answer === "string") return { text: answer };
  if (isSheetResult(answer)) return answer as ToolResult;
  return { text: textOf(answer), data: answer };
}

/** The inverse of `toToolResult`, for `undo`. */
function outputOf(result: ToolResult): unknown {
  return Object.hasOwn(result, "data") ? result.data : result.text;
}

function toDryRun(answer: DryRunSheet): DryRun {
  if (typeof answer === "string") return { summary: answer, preview: answer, impact: {} };
  const { summary, preview = "", impact = {}, unavailable } = answer;
  return definedFields({ summary, preview, impact, unavailable });
}

const RESULT_KEYS: readonly string[] = ["text", "isError", "data", "undo"];

function isSheetResult(answer: unknown): answer is SheetResult {
  if (typeof answer !== "object" || answer === null) return false;
  if (typeof (answer as SheetResult).text !== "string") return false;
  return Object.keys(answer).every((key) => RESULT_KEYS.includes(key));
}

function textOf(answer: unknown): string {
  if (answer === undefined) return "Done.";
  try {
    return JSON.stringify(answer) ?? String(answer);
  } catch (error) {
    return `Done. The answer cannot be written as text: ${errorText(error)}`;
  }
}

/** A call as the engine would make it, for testing a tool. Nothing is gated, recorded or undone. */
export function sampleCall(input: JsonValue, context: Partial<ToolContext> = {}): ToolCall {
  return {
    callId: "call-1",
    input,
    context: {
      tenant: "tenant-1",
      sessionId: "session-1",
      signal: new AbortController().signal,
      workingDirectory: "",
      progress: () => {},
      idempotencyKey: "key-1",
      fence: 1,
      ...context,
    },
  };
}
