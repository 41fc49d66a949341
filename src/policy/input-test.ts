import { canonicalJson } from "../util/canonical-json.ts";
import type { JsonValue } from "../util/json.ts";
import type { InputTest } from "./policy.ts";

type Step = string | number;

export interface CompiledInputTest {
  readonly steps: readonly Step[];
  /** The path in its normal form, for the index. */
  readonly at: string;
  /** Canonical texts, one of which must be equal; undefined when the test does not compare for equality. */
  readonly equal: ReadonlySet<string> | undefined;
  readonly test: InputTest;
}

export function compileInputTest(test: InputTest): CompiledInputTest {
  const steps = parseSteps(test.at);
  const wanted = test.equals === undefined ? test.oneOf : [test.equals];
  return {
    steps: steps ?? [],
    at: JSON.stringify(steps),
    equal: wanted === undefined ? undefined : new Set(wanted.map(canonicalJson)),
    test,
  };
}

/** Reads own properties only, so that a prototype cannot provide input. Undefined when the place does not exist. */
export function valueAt(input: JsonValue, steps: readonly Step[]): JsonValue | undefined {
  let value: JsonValue | undefined = input;
  for (const step of steps) {
    if (typeof value !== "object" || value === null) return undefined;
    if (Array.isArray(value) !== (typeof step === "number")) return undefined;
    if (!Object.hasOwn(value, step)) return undefined;
    value = (value as Record<Step, JsonValue>)[step];
  }
  return value;
}

/** A place that does not exist satisfies no test. */
export function holdsForInput(compiled: CompiledInputTest, input: JsonValue): boolean {
  const { equal, test } = compiled;
  const value = valueAt(input, compiled.steps);
  if (value === undefined) return false;
  if (equal !== undefined && !equal.has(canonicalJson(value))) return false;
  if (test.prefix !== undefined && !startsWith(value, test.prefix)) return false;
  if (test.min !== undefined && !(typeof value === "number" && value >= test.min)) return false;
  return !(test.max !== undefined && !(typeof value === "number" && value <= test.max));
}

function startsWith(value: JsonValue, prefix: string): boolean {
  return typeof value === "string" && value.startsWith(prefix);
}

/** Parses `$.a[0]["b c"]` into its steps; undefined for any other syntax. */
export function parseSteps(at: string): readonly Step[] | undefined {
  if (at.length > 1024 || !at.startsWith("$")) return undefined;
  const steps: Step[] = [];
  // One anchored step at a time, without nested repetition: linear in the length of the path.
  const step = /\.([A-Za-z_$][\w$]*)|\[(0|[1-9]\d{0,8})\]|\[("(?:[^"\\]|\\.)*")\]/y;
  step.lastIndex = 1;
  while (step.lastIndex < at.length) {
    const [, name, index, quoted] = step.exec(at) ?? [];
    if (name !== undefined) steps.push(name);
    else if (index !== undefined) steps.push(Number(index));
    else if (quoted !== undefined) {
      const key = parseKey(quoted);
      if (key === undefined) return undefined;
      steps.push(key);
    } else return undefined;
  }
  return steps;
}

function parseKey(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return undefined;
  }
}
