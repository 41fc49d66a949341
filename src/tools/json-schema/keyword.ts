import { canonicalJson } from "../../util/canonical-json.ts";
import type { JsonObject, JsonValue } from "../../util/json.ts";
import { compilePattern, type Pattern, PatternError } from "./pattern.ts";
import type { Check, Run } from "./run.ts";

/** Turns the value of one keyword into a check; undefined when the keyword alone asks for nothing. */
export type Keyword = (value: JsonValue, site: Site) => Check | undefined;

/** Where a keyword stands. */
export interface Site {
  /** The schema object around it, for keywords that depend on their neighbours. */
  readonly schema: JsonObject;
  /** Compiles a schema below this keyword. */
  compile(schema: JsonValue | undefined, ...steps: (string | number)[]): Check;
  resolve(reference: string): Check;
  /** Ends the compilation; `problem` is the rest of a sentence about this keyword. */
  refuse(problem: string): never;
}

export function schemaObject(value: JsonValue | undefined, site: Site): JsonObject {
  if (isJsonObject(value)) return value;
  return site.refuse("must be an object");
}

export function schemaList(value: JsonValue, site: Site): JsonValue[] {
  if (Array.isArray(value) && value.length > 0) return value;
  return site.refuse("must be a list with at least one entry");
}

export function nameList(value: JsonValue | undefined, site: Site): string[] {
  const isNames = Array.isArray(value) && value.every((name) => typeof name === "string");
  return isNames ? (value as string[]) : site.refuse("must be a list of texts");
}

export function count(value: JsonValue | undefined, site: Site): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  return site.refuse("must be a whole number from 0 up");
}

export function finite(value: JsonValue, site: Site): number {
  return typeof value === "number" ? value : site.refuse("must be a number");
}

export function pattern(source: JsonValue, site: Site): Pattern {
  if (typeof source !== "string") return site.refuse("must be a text");
  try {
    return compilePattern(source);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    return site.refuse(`is a pattern that is not accepted: ${error.message}`);
  }
}

/** A map from names to schemas, compiled. */
export function schemaMap(value: JsonValue | undefined, site: Site): Map<string, Check> {
  const entries = Object.entries(schemaObject(value, site));
  return new Map(entries.map(([name, schema]) => [name, site.compile(schema, name)]));
}

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Two values are equal when their canonical texts are; making one costs by its size. */
export function textOf(value: JsonValue, run: Run): string {
  const text = canonicalJson(value);
  run.spend(typeof value === "object" ? 8 + text.length : 4 + (text.length >> 3));
  return text;
}
