import type { z } from "zod";
import { SallyportError } from "../model/errors.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import type { Route } from "./route.ts";

/** What a query can say is text; the schema tells which of it are numbers and lists. */
export function queryInput(route: Route, query: Readonly<Record<string, string[]>>): JsonObject {
  const input: JsonObject = {};
  for (const [field, texts] of Object.entries(query)) {
    const schema = Object.hasOwn(route.input.shape, field) ? route.input.shape[field] : undefined;
    input[field] = queryValue(schema, texts);
  }
  return input;
}

function queryValue(schema: z.core.$ZodType | undefined, texts: readonly string[]): JsonValue {
  const type = schema === undefined ? "string" : innerType(schema);
  if (type === "array") return [...texts];
  const [text = ""] = texts;
  if (texts.length > 1) throw invalid("query", "Give each name in the query once.");
  if (type === "number" && /^-?\d{1,15}$/.test(text)) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}

function innerType(schema: z.core.$ZodType): string {
  const { def } = schema._zod;
  const inner = (def as { innerType?: z.core.$ZodType }).innerType;
  return inner === undefined ? def.type : innerType(inner);
}

/** Path, query or body as one checked value. Throws invalid_input with where it is wrong, never with what stood there. */
export function checkedInput(
  route: Route,
  params: Readonly<Record<string, string>>,
  rest: JsonObject,
): Record<string, unknown> {
  const twice = Object.keys(params).find((param) => Object.hasOwn(rest, param));
  if (twice !== undefined) throw invalid(twice, `Say ${twice} in the path only.`);
  const result = route.input.safeParse({ ...rest, ...params });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const where = issue?.path.map(String).join(".") || "input";
  throw invalid(where.slice(0, 200), hintOf(issue));
}

/** zod's own sentences are fine where they name only types and limits. */
function hintOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue === undefined) return "The input does not fit.";
  if (issue.code === "unrecognized_keys") {
    const keys = issue.keys.slice(0, 5).map((key) => JSON.stringify(key.slice(0, 60)));
    return `Leave out what is not known here: ${keys.join(", ")}.`;
  }
  return `${issue.message}.`;
}

function invalid(what: string, hint: string): SallyportError {
  return new SallyportError("invalid_input", { what, hint });
}
