import { SallyportError } from "../model/errors.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText, oneLine } from "../util/error-text.ts";
import { deepFreeze, type JsonObject, type JsonValue, type ReadonlyJson } from "../util/json.ts";
import { formatPath } from "../util/json-error.ts";
import { compileJsonSchema } from "./json-schema/compile-json-schema.ts";
import type { InputIssue, ParsedInput, Tool, ToolResult } from "./tool.ts";

/** A schema of zod or any other Standard Schema library, or a JSON Schema (2020-12) as plain data. */
export type ToolInput = StandardSchema | { readonly [key: string]: ReadonlyJson };

/**
 * Returns the input schema for the model and the parser that enforces it. A plain JSON Schema is both. A Standard
 * Schema enforces itself and provides its JSON Schema; where the library cannot, pass it separately (for instance
 * `inputSchema: z.toJSONSchema(schema)` for zod before 4.2). Throws invalid_input.
 */
export function readToolInput(
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
export type OutputOfSchema<Schema extends StandardSchema> = NonNullable<
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
