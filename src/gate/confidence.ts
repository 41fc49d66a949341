import { CONFIDENCE_KEY } from "../tools/describe-tool.ts";
import type { JsonValue } from "../util/json.ts";
import { JsonError } from "../util/json-error.ts";
import { parseStrictJson } from "../util/strict-json.ts";
import { cutMember } from "./cut-member.ts";
import { shown } from "./shown.ts";

export interface ConfidenceOptions {
  /** The agent's own estimate must be at least this, 0 to 100; 0 switches the gate off. */
  readonly min: number;
  readonly key?: string;
}

export type ConfidenceAnswer<Input> =
  | { readonly ok: true; readonly input: Input }
  | { readonly ok: false; readonly message: string };

/**
 * May a call go on, by the agent's own estimate? A string is taken for the JSON text that the model wrote. The estimate
 * can only stop a call: nothing a model can send makes the gate laxer than a plain number at or above the minimum.
 *
 * With a minimum of 0 the very same input comes back, unread. Above 0 the reserved key is taken out on a pass, and of a
 * text everything else stays byte for byte.
 */
export function checkConfidence<Input extends string | JsonValue>(
  input: Input,
  { min, key = CONFIDENCE_KEY }: ConfidenceOptions,
): ConfidenceAnswer<Input> {
  if (min === 0) return { ok: true, input };
  // Not `min <= 0`: NaN, which is neither above nor below, would switch the gate off.
  if (typeof min !== "number" || !(min > 0 && min <= 100)) {
    return fail(
      `Confidence gate: this tool asks for a minimum that is not a number from 0 to 100, so no call can pass. Nothing was executed. Tell the operator.`,
    );
  }
  const read = typeof input === "string" ? readText(input, key, min) : { value: input };
  if ("message" in read) return fail(read.message);
  const { value } = read;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return fail(missing(key, min, "the input is not a JSON object, so the key cannot be found"));
  }
  if (!Object.hasOwn(value, key)) return fail(missing(key, min, "it is missing from the input"));
  const problem = judge(value[key], key, min);
  if (problem !== undefined) return fail(problem);
  const rest =
    typeof input === "string"
      ? cutMember(input, key)
      : Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
  return { ok: true, input: rest as Input };
}

function readText(
  text: string,
  key: string,
  min: number,
): { readonly value: JsonValue } | { readonly message: string } {
  try {
    return { value: parseStrictJson(text) };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { message: missing(key, min, `the input cannot be read (${error.message})`) };
  }
}

function judge(value: unknown, key: string, min: number): string | undefined {
  if (typeof value !== "number" || !(value >= 0 && value <= 100)) {
    const got = typeof value === "number" ? String(value) : kindOf(value);
    return `Confidence gate: ${shown(key)} must be a plain number from 0 to 100, got ${got}. This tool requires at least ${min}. Nothing was executed. Send the call again with an honest estimate.`;
  }
  if (value >= min) return undefined;
  return `Confidence gate: your confidence of ${value} is below the required minimum of ${min}. Nothing was executed. Find out more or choose another way; do not just raise the number.`;
}

function missing(key: string, min: number, why: string): string {
  return `Confidence gate: this tool needs ${shown(key)} in its input, a self-estimate from 0 to 100 of at least ${min}; ${why}. Nothing was executed. Send the call again with an honest estimate.`;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : `a value of type ${typeof value}`;
}

function fail(message: string): { readonly ok: false; readonly message: string } {
  return { ok: false, message };
}
