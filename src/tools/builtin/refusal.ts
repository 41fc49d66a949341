import type { JsonObject } from "../../util/json.ts";
import type { StandardSchema } from "../tool-input.ts";
import type { UndoRecipe } from "../undo.ts";

/** Why a built-in tool did nothing; in the result's data, for code that handles the cases differently. */
export type RefusalCode =
  | "conflict"
  | "not_found"
  | "already_exists"
  | "too_large"
  | "not_allowed"
  | "unusable"
  | "timed_out";

/**
 * A tool refused and changed nothing. The message is written for the model: what was refused, why, and what to do
 * instead. Any other thrown value means that the outcome is unknown.
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

/** Runs the body of `execute` and turns a refusal into a result: an expected refusal is a value, not a throw. */
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
 * The `undo` of tools whose `execute` creates its own undo record, because only there the old state is known. A call of
 * it means that the record was lost, which `makeUndo` reports.
 */
export function undoFromResult({ result }: { result: { undo?: UndoRecipe } }): UndoRecipe {
  if (result.undo === undefined) throw new Error("the result came without its undo record");
  return result.undo;
}

/** The code of an operating system error, such as ENOENT; empty for anything else. */
export function errorCodeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : "";
  return typeof code === "string" ? code : "";
}

/**
 * Adds a TypeScript type to a plain JSON Schema. At run time it stays the JSON Schema that `defineTool` enforces; it is
 * a Standard Schema for the compiler only, which cannot derive a type from a JSON Schema.
 */
export function jsonInput<Value>(
  properties: JsonObject,
  required: readonly (keyof Value & string)[],
): StandardSchema<Value> {
  const schema = { type: "object", properties, required, additionalProperties: false };
  return schema as unknown as StandardSchema<Value>;
}
