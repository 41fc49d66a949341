import { errorText } from "../util/error-text.ts";
import type { DryRun, ToolResult } from "./tool.ts";
import type { UndoRecipe } from "./undo.ts";

/** What `execute` of a tool sheet may give beside any other value: a result in our own words. */
export interface SheetResult {
  readonly text: string;
  readonly isError?: boolean;
  readonly data?: unknown;
  readonly undo?: UndoRecipe;
}

/** What `undo` gets to see of an execution's answer. */
export type OutputOf<Answer> = [Answer] extends [string]
  ? string
  : [Answer] extends [SheetResult]
    ? "data" extends keyof Answer
      ? Answer["data"]
      : string
    : Answer;

export type DryRunSheet = string | (Pick<DryRun, "summary"> & Partial<DryRun>);

/**
 * A tool may give what its API gives: the model then reads it as JSON, and code gets the very object. An object that has a
 * `text` and nothing that a result has not is a result already. Never throws: whatever it is, it has happened.
 */
export function toToolResult(answer: unknown): ToolResult {
  if (typeof answer === "string") return { text: answer };
  if (isSheetResult(answer)) return answer as ToolResult;
  return { text: textOf(answer), data: answer };
}

/** The counterpart of `toToolResult`, for `undo`. */
export function outputOf(result: ToolResult): unknown {
  return Object.hasOwn(result, "data") ? result.data : result.text;
}

export function toDryRun(answer: DryRunSheet): DryRun {
  if (typeof answer === "string") return { summary: answer, preview: answer, impact: {} };
  const { summary, preview = "", impact = {}, unavailable } = answer;
  return { summary, preview, impact, ...(unavailable === undefined ? {} : { unavailable }) };
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
