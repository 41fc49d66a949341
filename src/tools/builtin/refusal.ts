import type { JsonObject } from "../../util/json.ts";
import type { StandardSchema } from "../tool-input.ts";
import type { UndoRecipe } from "../undo.ts";

/** Why a built-in tool did nothing; in the result's data, for code that wants to tell the cases apart. */
export type RefusalCode =
  | "conflict"
  | "not_found"
  | "already_exists"
  | "too_large"
  | "not_allowed"
  | "unusable"
  | "timed_out";

/**
 * A tool's no: nothing was changed. The message is written for the model that reads it: what was refused, why, and what to
 * do instead. Anything else that is thrown means that nobody knows what happened.
 */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly code: RefusalCode;

  constructor(code: RefusalCode, message: string) {
    super(message);
    this.code = code;
  }
}

export interface Answered<Data> {
  readonly text: string;
  readonly data: Data | Refused;
  readonly isError?: boolean;
  readonly undo?: UndoRecipe;
}

export interface Refused {
  readonly refused: RefusalCode;
}

/** Runs the body of `execute` and turns a refusal into a result, because the domain's no is a value and not a throw. */
export async function answerOrRefuse<Data>(
  work: () => Promise<Answered<Data>>,
): Promise<Answered<Data>> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { text: error.message, isError: true, data: { refused: error.code } };
  }
}

/**
 * The `undo` of tools whose `execute` writes its own undo record, because only there the old state was at hand. Being asked
 * means that the record got lost on the way, which `makeUndo` reports.
 */
export function undoFromResult({ result }: { result: { undo?: UndoRecipe } }): UndoRecipe {
  if (result.undo === undefined) throw new Error("the result came without its undo record");
  return result.undo;
}

/** The code of an operating system's error, such as ENOENT; empty for anything else. */
export function errorCodeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : "";
  return typeof code === "string" ? code : "";
}

/**
 * A plain JSON Schema with a type beside it. At run time it stays the JSON Schema that `defineTool` enforces; the claim of
 * being a Standard Schema exists for the compiler alone, which cannot read a type out of a JSON Schema.
 */
export function jsonInput<Value>(
  properties: JsonObject,
  required: readonly (keyof Value & string)[],
): StandardSchema<Value> {
  const schema = { type: "object", properties, required, additionalProperties: false };
  return schema as unknown as StandardSchema<Value>;
}
