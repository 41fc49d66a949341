import { CONFIDENCE_KEY } from "../tools/definition.ts";
import { InvariantError, invariant } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import { JsonError } from "../util/json-error.ts";
import { parseStrictJson } from "../util/strict-json.ts";
import { shown } from "./answers.ts";

interface ConfidenceOptions {
  /** The agent's own estimate must be at least this, 0 to 100; 0 switches the gate off. */
  readonly min: number;
  readonly key?: string;
}

type ConfidenceAnswer<Input> =
  | { readonly ok: true; readonly input: Input }
  | { readonly ok: false; readonly message: string };

/**
 * Decides by the agent's own estimate whether a call may proceed. A string is parsed as the JSON text that the model
 * wrote. The estimate can only stop a call: no input makes the gate more lenient than a plain number at or above the
 * minimum.
 *
 * With a minimum of 0 the input is returned unread and unchanged. Above 0 the reserved key is removed on a pass; the
 * other bytes of a text stay the same.
 */
export function checkConfidence<Input extends string | JsonValue>(
  input: Input,
  { min, key = CONFIDENCE_KEY }: ConfidenceOptions,
): ConfidenceAnswer<Input> {
  if (min === 0) return { ok: true, input };
  // Not `min <= 0`: NaN is neither above nor below and would switch the gate off.
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
  return `Confidence gate: your confidence of ${value} is below the required minimum of ${min}. Nothing was executed. Find out more or choose another approach; do not just raise the number.`;
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

interface Member {
  readonly key: string;
  readonly keyAt: number;
  readonly valueEnd: number;
  /** The position of the comma after it, or -1 for the last member. */
  readonly commaAt: number;
}

/**
 * Removes one member from the text of a JSON object and keeps every other byte, including white space and spelling. The
 * text must have passed the strict parser. Keys are compared by value, so a key written with escapes is found too.
 */
function cutMember(text: string, key: string): string {
  let previousComma = -1;
  for (const member of membersOf(text)) {
    if (member.key !== key) {
      previousComma = member.commaAt;
      continue;
    }
    if (member.commaAt >= 0) return text.slice(0, member.keyAt) + text.slice(member.commaAt + 1);
    // The last member is removed with the comma before it, if any.
    const from = previousComma >= 0 ? previousComma : member.keyAt;
    return text.slice(0, from) + text.slice(member.valueEnd);
  }
  return text;
}

function* membersOf(text: string): Generator<Member> {
  let at = skipSpace(text, text.indexOf("{") + 1);
  while (text[at] === '"') {
    const keyAt = at;
    const keyEnd = endOfString(text, at);
    const key = JSON.parse(text.slice(keyAt, keyEnd)) as string;
    const valueAt = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const valueEnd = endOfValue(text, valueAt);
    at = skipSpace(text, valueEnd);
    const hasMore = text[at] === ",";
    yield { key, keyAt, valueEnd, commaAt: hasMore ? at : -1 };
    if (!hasMore) return;
    at = skipSpace(text, at + 1);
  }
}

function endOfValue(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') {
      at = endOfString(text, at) - 1;
      if (depth === 0) return at + 1;
    } else if (character === "{" || character === "[") {
      depth += 1;
    } else if (character === "}" || character === "]") {
      // A number or literal ends at the closing bracket of the object around it.
      if (depth === 0) return trimEnd(text, at);
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (character === "," && depth === 0) {
      return trimEnd(text, at);
    }
  }
  throw new InvariantError("cutMember was given a text that is not a JSON object");
}

function endOfString(text: string, from: number): number {
  let at = from + 1;
  while (text[at] !== '"') {
    invariant(at < text.length, "cutMember was given a text that is not a JSON object");
    at += text[at] === "\\" ? 2 : 1;
  }
  return at + 1;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (isSpace(text[at])) at += 1;
  return at;
}

function trimEnd(text: string, from: number): number {
  let at = from;
  while (isSpace(text[at - 1])) at -= 1;
  return at;
}

function isSpace(character: string | undefined): boolean {
  return character === " " || character === "\n" || character === "\r" || character === "\t";
}
