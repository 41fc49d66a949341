import { SallyportError } from "../model/errors.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { deepFreeze } from "../util/deep-freeze.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonObject, JsonValue, ReadonlyJson } from "../util/json.ts";
import { compileJsonSchema } from "./json-schema/compile-json-schema.ts";
import { parseWithStandardSchema } from "./standard-input.ts";
import { isStandardSchema, type StandardSchema } from "./standard-schema.ts";
import type { InputIssue, ParsedInput, Tool } from "./tool.ts";

/** A schema of zod or any other Standard Schema library, or a JSON Schema (2020-12) as plain data. */
export type ToolInput = StandardSchema | { readonly [key: string]: ReadonlyJson };

/**
 * The two halves of a tool's input: what the model is told and what is enforced. With a plain JSON Schema both are the
 * same. A Standard Schema enforces itself; its JSON Schema is asked from it, or given beside it where the library cannot
 * tell (for instance `inputSchema: z.toJSONSchema(schema)` for zod before 4.2). Throws invalid_input.
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
      `This version of ${vendor} cannot tell its JSON Schema; give it beside it as inputSchema.`,
    );
  }
  try {
    return jsonSchema.input({ target: "draft-2020-12" });
  } catch (error) {
    return refuse(
      `The input schema has no JSON Schema (${errorText(error)}). Use types that JSON has, or give inputSchema beside it.`,
      error,
    );
  }
}

/** A frozen copy: what a reviewer agreed to must not change because somebody still holds the object. */
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
