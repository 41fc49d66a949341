import { canonicalJson } from "../util/canonical-json.ts";
import { errorText, oneLine } from "../util/error-text.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import { formatPath } from "../util/json-error.ts";
import type { StandardIssue, StandardSchema } from "./standard-schema.ts";
import type { InputIssue, ParsedInput } from "./tool.ts";

const MOST_ISSUES = 20;

/**
 * Parses with a Standard Schema, and holds it to what an approval needs. A schema may fill in defaults and trim texts: the
 * rewritten value is what people see and what runs. It may not answer later, drop what the agent wrote (an ignored
 * `dryRun: true` would be a surprise), give something that is not JSON, or rewrite its own result once more, because then
 * what was approved and what runs would differ.
 */
export function parseWithStandardSchema(schema: StandardSchema, input: JsonValue): ParsedInput {
  try {
    const first = parseOnce(schema, input);
    if (!first.ok) return first;
    const dropped = findDropped(input, first.value, []);
    if (dropped.length > 0) return { ok: false, issues: dropped.slice(0, MOST_ISSUES) };
    const text = canonicalJson(first.value);
    if (text === canonicalJson(input)) return first;
    const second = parseOnce(schema, structuredClone(first.value));
    if (second.ok && canonicalJson(second.value) === text) return first;
    return fault("rewrites its own result, so that nobody could know what runs");
  } catch (error) {
    return fault(`failed: ${errorText(error)}`);
  }
}

function parseOnce(schema: StandardSchema, input: JsonValue): ParsedInput {
  const result = schema["~standard"].validate(input);
  if (result instanceof Promise) {
    result.catch(() => {});
    // zod answers with a promise also when a check of its own throws, so this cannot tell the two apart.
    return fault("does not answer at once: one of its checks is asynchronous or has thrown");
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

/** What the input has and the parsed value has not. */
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

/** Not the sender's mistake, but the call cannot be made all the same. */
function fault(problem: string): ParsedInput {
  const message = `cannot be checked: the tool's input schema ${problem}. Tell the operator; do not repeat the call`;
  return { ok: false, issues: [{ path: "$", message }] };
}
