import { SallyportError } from "../model/errors.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { definedFields } from "../util/defined-fields.ts";
import { errorText, oneLine } from "../util/error-text.ts";
import { deepFreeze, type JsonObject, type JsonValue, type ReadonlyJson } from "../util/json.ts";
import { formatPath } from "../util/json-error.ts";
import { compileJsonSchema } from "./json-schema/compile-json-schema.ts";
import { nameProblem } from "./registry.ts";
import type {
  DescriptionContext,
  DryRun,
  InputIssue,
  ParsedInput,
  Presented,
  ProbeAnswer,
  Resource,
  Tool,
  ToolCall,
  ToolContext,
  ToolResult,
} from "./tool.ts";
import { isTexts, type ListingSheet, readDeclarations, type SafetySheet } from "./tool.ts";
import type { UndoRecipe, UndoRecord } from "./tool-call.ts";

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
): Tool;
export function defineTool<const Input extends ToolInput>(sheet: ExternalSheet<Input>): Tool;
export function defineTool<const Input extends ToolInput, Answer>(
  given: ToolSheet<Input, Answer> | ExternalSheet<Input>,
): Tool {
  const isExternal = "execution" in given && given.execution === "external";
  const sheet = (isExternal ? { ...given, execute: carriedOutElsewhere } : given) as ToolSheet<
    Input,
    Answer
  >;
  const { name, description, execute } = sheet;
  const hint = nameProblem(name) ?? sheetProblem(sheet);
  if (hint !== undefined) throw new SallyportError("invalid_input", { tool: String(name), hint });
  const { inputSchema, parseInput } = readToolInput(sheet.input, sheet.inputSchema);

  /** Throws invalid_input, for callbacks without a result to report it in. */
  const checkedInput = (input: unknown): CheckedInput<Input> => {
    const parsed = parseInput(input as JsonValue);
    if (parsed.ok) return parsed.value as CheckedInput<Input>;
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
      return toToolResult(await execute(sheetCall(call, parsed.value as CheckedInput<Input>)));
    },
    ...frozenParts(readDeclarations(name, sheet, { undo: sheet.undo !== undefined })),
    ...optionalContracts(sheet, checkedInput),
    ...definedFields({
      idempotency: sheet.idempotency,
      undoOnly: sheet.undoOnly === true ? (true as const) : undefined,
      execution: isExternal ? ("external" as const) : undefined,
      version: sheet.version,
      continues: sheet.continues && Object.freeze([...sheet.continues]),
    }),
  });
}

/** No path of the gate calls it; a program that does so learns why nothing happened. */
function carriedOutElsewhere(): ToolResult {
  const text = "Not executed: this tool is executed by an external executor, under a permit.";
  return { text, isError: true };
}

/** An approved definition must not change afterwards. */
function frozenParts<Parts extends object>(parts: Parts): Parts {
  for (const part of Object.values(parts)) deepFreeze(part);
  return parts;
}

type Contracts = Pick<
  Tool,
  "dryRun" | "generateUndo" | "probe" | "stateVersion" | "resources" | "present" | "prepare"
>;

/** Only functions that the sheet has: their presence says what a tool can do. */
function optionalContracts<Input extends ToolInput, Answer>(
  {
    dryRun,
    undo,
    probe,
    stateVersion,
    resources,
    present,
    prepare,
  }: ToolSheet<Input, Answer> & Pick<ExternalSheet<Input>, "prepare">,
  checkedInput: (input: unknown) => CheckedInput<Input>,
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
    ...(prepare && { prepare: async (call) => prepare(checked(call)) }),
    ...(resources && {
      resources: (input, { workingDirectory }) =>
        resources({ input: checkedInput(input), workingDirectory }),
    }),
    ...(present && { present: (input) => present({ input: checkedInput(input) }) }),
  };
}

function sheetCall<Input>({ callId, context }: ToolCall, input: Input): SheetCall<Input> {
  const { tenant, sessionId, signal, workingDirectory, places, judgePlace } = context;
  const { idempotencyKey, fence } = context;
  // Copied field by field: a context may hold more than tools should see, and `progress` may need its `this`.
  return {
    callId,
    input,
    tenant,
    sessionId,
    signal,
    workingDirectory,
    places,
    judgePlace,
    idempotencyKey,
    fence,
    progress: (report) => context.progress(report),
  };
}

type SheetFields = Partial<
  Readonly<Record<keyof ToolSheet<ToolInput, unknown> | "prepare", unknown>>
>;

const FUNCTIONS = [
  "dryRun",
  "undo",
  "probe",
  "stateVersion",
  "resources",
  "present",
  "prepare",
] as const;

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
  if (continues !== undefined && !isTexts(continues)) {
    return "continues must be a list of versions.";
  }
  return undefined;
}

type Awaitable<Value> = Value | PromiseLike<Value>;

/** The checked input for the callbacks: typed by the schema, or any object for a plain JSON Schema. */
export type CheckedInput<Input extends ToolInput> = Input extends StandardSchema
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
  readonly dryRun?: (call: SheetCall<CheckedInput<Input>>) => Awaitable<DryRunSheet>;
  readonly execute: (call: SheetCall<CheckedInput<Input>>) => Awaitable<Answer>;
  /** The call that undoes this one. Called right after a success; it does not undo anything itself. */
  readonly undo?: (done: DoneCall<CheckedInput<Input>, OutputOf<Answer>>) => Awaitable<UndoRecipe>;
  readonly probe?: (call: SheetCall<CheckedInput<Input>>) => Awaitable<ProbeSheet<Answer>>;
  readonly stateVersion?: (call: SheetCall<CheckedInput<Input>>) => Awaitable<string>;
  readonly resources?: (asked: {
    readonly input: CheckedInput<Input>;
    readonly workingDirectory: string;
  }) => readonly Resource[];
  /**
   * The call in words for reviewers: a title, its fields, an amount. Synchronous and from the input alone, because lists and
   * notifications use it too. Part of what an approval is bound to.
   */
  readonly present?: (asked: { readonly input: CheckedInput<Input> }) => Presented;
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

/**
 * A tool that is not executed here: the gate judges, shows and approves its calls, and an external executor carries them out
 * under a permit. `session.call` always asks a person about it. `session.permit` gives the permit at once where the rules
 * allow the call. `undo` is called with the reported proof as its output.
 */
export interface ExternalSheet<Input extends ToolInput>
  extends Omit<ToolSheet<Input, unknown>, "execute" | "probe" | "idempotency"> {
  readonly execution: "external";
  /** See `Tool.prepare`. */
  readonly prepare?: (call: SheetCall<CheckedInput<Input>>) => Awaitable<void>;
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
    ? DataOf<Answer>
    : Answer;

/** Of each result that may come: its data, or the text where there is none. A refusal is not undone, so it has no output. */
type DataOf<Result> = Result extends { readonly isError: true }
  ? never
  : "data" extends keyof Result
    ? Result extends { readonly data: infer Data }
      ? Data
      : Exclude<Result["data"], undefined> | string
    : string;

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

/** A schema of zod or any other Standard Schema library, or a JSON Schema (2020-12) as plain data. */
export type ToolInput = StandardSchema | { readonly [key: string]: ReadonlyJson };

/**
 * Returns the input schema for the model and the parser that enforces it. A plain JSON Schema is both. A Standard
 * Schema enforces itself and provides its JSON Schema; where the library cannot, pass it separately (for instance
 * `inputSchema: z.toJSONSchema(schema)` for zod before 4.2). Throws invalid_input.
 */
function readToolInput(
  input: ToolInput,
  beside: JsonObject | undefined,
): Pick<Tool, "inputSchema" | "parseInput"> {
  if (!isStandardSchema(input)) {
    if (beside !== undefined) refuse("Give a JSON Schema once: as input, without inputSchema.");
    const inputSchema = ownCopy(input);
    const check = compileJsonSchema(inputSchema);
    return { inputSchema, parseInput: (value) => answer(value, check(value)) };
  }
  const inputSchema = ownCopy(beside ?? askedFrom(input));
  return { inputSchema, parseInput: (value) => parseWithStandardSchema(input, value) };
}

function answer(value: JsonValue, issues: readonly InputIssue[]): ParsedInput {
  return issues.length === 0 ? { ok: true, value } : { ok: false, issues };
}

function askedFrom(schema: StandardSchema): unknown {
  const { jsonSchema, vendor } = schema["~standard"];
  if (jsonSchema === undefined) {
    return refuse(
      `This version of ${vendor} cannot produce its JSON Schema; pass it as inputSchema.`,
    );
  }
  try {
    return jsonSchema.input({ target: "draft-2020-12" });
  } catch (error) {
    return refuse(
      `The input schema has no JSON Schema (${errorText(error)}). Use types that JSON has, or pass inputSchema.`,
      error,
    );
  }
}

/** A frozen copy: an approved schema must not change through the caller's object. */
function ownCopy(schema: unknown): JsonObject {
  try {
    canonicalJson(schema);
  } catch (error) {
    return refuse(`The input schema is not plain JSON: ${errorText(error)}`, error);
  }
  const copy = structuredClone(schema) as JsonObject;
  if (copy["type"] !== "object") {
    refuse(
      'The input of a tool is an object: its JSON Schema must say "type": "object" at the top.',
    );
  }
  return deepFreeze(copy);
}

function refuse(hint: string, cause?: unknown): never {
  throw new SallyportError("invalid_input", { what: "input schema", hint }, cause);
}

const MOST_ISSUES = 20;

/**
 * Parses with a Standard Schema and checks what an approval needs. A schema may add defaults and trim texts: the
 * rewritten value is shown and run. It must not be asynchronous, drop what the agent wrote (an ignored `dryRun: true`
 * would be a surprise), return something that is not JSON, or rewrite its own result again, because then the executed
 * value would differ from the approved one.
 */
function parseWithStandardSchema(schema: StandardSchema, input: JsonValue): ParsedInput {
  try {
    const first = parseOnce(schema, input);
    if (!first.ok) return first;
    const dropped = findDropped(input, first.value, []);
    if (dropped.length > 0) return { ok: false, issues: dropped.slice(0, MOST_ISSUES) };
    const text = canonicalJson(first.value);
    if (text === canonicalJson(input)) return first;
    const second = parseOnce(schema, structuredClone(first.value));
    if (second.ok && canonicalJson(second.value) === text) return first;
    return fault("rewrites its own result, so that the executed value would be unknown");
  } catch (error) {
    return fault(`failed: ${errorText(error)}`);
  }
}

function parseOnce(schema: StandardSchema, input: JsonValue): ParsedInput {
  const result = schema["~standard"].validate(input);
  if (result instanceof Promise) {
    result.catch(() => {});
    // zod also returns a promise when one of its own checks throws, so the two cases cannot be distinguished.
    return fault("does not answer synchronously: one of its checks is asynchronous or has thrown");
  }
  if (result.issues === undefined) return { ok: true, value: result.value as JsonValue };
  return { ok: false, issues: result.issues.slice(0, MOST_ISSUES).map(toInputIssue) };
}

function toInputIssue({ message, path = [] }: StandardIssue): InputIssue {
  const steps = path.map((step) => (typeof step === "object" ? step.key : step));
  return {
    path: formatPath(steps.map((step) => (typeof step === "number" ? step : String(step)))),
    message: oneLine(message),
  };
}

/** The places that the input has and the parsed value lacks. */
function findDropped(
  input: JsonValue,
  parsed: unknown,
  path: readonly (string | number)[],
): InputIssue[] {
  if (typeof input !== "object" || input === null) return [];
  if (typeof parsed !== "object" || parsed === null) return [];
  if (Array.isArray(input) !== Array.isArray(parsed)) return [];
  return Object.keys(input).flatMap((key) => {
    const here = [...path, Array.isArray(input) ? Number(key) : key];
    if (!Object.hasOwn(parsed, key)) {
      return [{ path: formatPath(here), message: "is not a known name here; leave it out" }];
    }
    return findDropped((input as JsonObject)[key] as JsonValue, (parsed as JsonObject)[key], here);
  });
}

/** A fault of the tool, not of the sender; the call cannot be made. */
function fault(problem: string): ParsedInput {
  const message = `cannot be checked: the tool's input schema ${problem}. Tell the operator; do not repeat the call`;
  return { ok: false, issues: [{ path: "$", message }] };
}

/**
 * The parts of a Standard Schema (standardschema.dev, version 1) that are used: zod, valibot, arktype and others
 * implement it. A structural type, so that none of them is a dependency. Libraries with Standard JSON Schema (zod from
 * 4.2) also provide the JSON Schema for the model.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: "draft-2020-12" }) => Record<string, unknown>;
    };
  };
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type of a checked input. */
type OutputOfSchema<Schema extends StandardSchema> = NonNullable<
  Schema["~standard"]["types"]
>["output"];

function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard = (value as Partial<StandardSchema>)["~standard"];
  return typeof standard === "object" && standard?.version === 1;
}

/** The answer to a call with invalid input: the tool was not called, and these places need correction. */
export function inputError(tool: string, issues: readonly InputIssue[]): ToolResult {
  const lines = issues.map(({ path, message }) => `- ${path} ${message}`);
  const text = [
    `"${tool}" was not called: its input does not fit the schema.`,
    ...lines,
    "Correct these places and call it again.",
  ].join("\n");
  return { text, isError: true };
}
