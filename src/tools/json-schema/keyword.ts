import { canonicalJson } from "../../util/canonical-json.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../util/json.ts";
import { compilePattern, type Pattern, PatternError } from "./pattern.ts";
import type { Check, Run } from "./run.ts";

/** Turns the value of one keyword into a check; undefined when the keyword alone restricts nothing. */
export type Keyword = (value: JsonValue, site: Site) => Check | undefined;

/** The place of a keyword in its schema. */
export interface Site {
  /** The schema object around it, for keywords that depend on their neighbours. */
  readonly schema: JsonObject;
  /** Compiles a schema below this keyword. */
  compile(schema: JsonValue | undefined, ...steps: (string | number)[]): Check;
  resolve(reference: string): Check;
  /** Ends the compilation; `problem` is the rest of a sentence about this keyword. */
  refuse(problem: string): never;
}

export function readObject(value: JsonValue | undefined, site: Site): JsonObject {
  return isJsonObject(value) ? value : site.refuse("must be an object");
}

/** Compiles a list of schemas. */
export function readSchemas(value: JsonValue, site: Site): readonly Check[] {
  if (!Array.isArray(value) || value.length === 0) {
    return site.refuse("must be a list with at least one entry");
  }
  return value.map((schema, index) => site.compile(schema, index));
}

/** Compiles a map from names to schemas. */
export function readSchemaMap(value: JsonValue, site: Site): Map<string, Check> {
  const entries = Object.entries(readObject(value, site));
  return new Map(entries.map(([name, schema]) => [name, site.compile(schema, name)]));
}

export function readNames(value: JsonValue | undefined, site: Site): string[] {
  const isNames = Array.isArray(value) && value.every((name) => typeof name === "string");
  return isNames ? (value as string[]) : site.refuse("must be a list of texts");
}

export function readCount(value: JsonValue | undefined, site: Site): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  return site.refuse("must be a whole number from 0 up");
}

export function readNumber(value: JsonValue, site: Site): number {
  return typeof value === "number" ? value : site.refuse("must be a number");
}

export function readPattern(source: JsonValue, site: Site): Pattern {
  if (typeof source !== "string") return site.refuse("must be a text");
  try {
    return compilePattern(source);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    return site.refuse(`is a pattern that is not accepted: ${error.message}`);
  }
}

/** Returns the size of a value, or undefined for a value that the keyword is not about. */
type Measure = (value: JsonValue, run: Run) => number | undefined;

export function atLeast(measure: Measure, unit: string): Keyword {
  return (value, site) => {
    const least = readCount(value, site);
    return (found, run) =>
      (measure(found, run) ?? least) >= least || run.fail(`must have ${least} ${unit} or more`);
  };
}

export function atMost(measure: Measure, unit: string): Keyword {
  return (value, site) => {
    const most = readCount(value, site);
    return (found, run) =>
      (measure(found, run) ?? most) <= most || run.fail(`must have at most ${most} ${unit}`);
  };
}

/** The canonical text of a value: equal values have equal texts. Costs steps by its length. */
export function canonicalText(value: JsonValue, run: Run): string {
  const text = canonicalJson(value);
  run.spend(typeof value === "object" ? 8 + text.length : 4 + (text.length >> 3));
  return text;
}
