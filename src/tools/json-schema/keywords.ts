import { canonicalJson } from "../../util/canonical-json.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../util/json.ts";
import { formatPath } from "../../util/json-error.ts";
import type { InputIssue } from "../tool.ts";
import { compilePattern, type Pattern, PatternError } from "./pattern.ts";

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

function readObject(value: JsonValue | undefined, site: Site): JsonObject {
  return isJsonObject(value) ? value : site.refuse("must be an object");
}

/** Compiles a list of schemas. */
function readSchemas(value: JsonValue, site: Site): readonly Check[] {
  if (!Array.isArray(value) || value.length === 0) {
    return site.refuse("must be a list with at least one entry");
  }
  return value.map((schema, index) => site.compile(schema, index));
}

/** Compiles a map from names to schemas. */
function readSchemaMap(value: JsonValue, site: Site): Map<string, Check> {
  const entries = Object.entries(readObject(value, site));
  return new Map(entries.map(([name, schema]) => [name, site.compile(schema, name)]));
}

function readNames(value: JsonValue | undefined, site: Site): string[] {
  const isNames = Array.isArray(value) && value.every((name) => typeof name === "string");
  return isNames ? (value as string[]) : site.refuse("must be a list of texts");
}

function readCount(value: JsonValue | undefined, site: Site): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number;
  return site.refuse("must be a whole number from 0 up");
}

function readNumber(value: JsonValue, site: Site): number {
  return typeof value === "number" ? value : site.refuse("must be a number");
}

function readPattern(source: JsonValue, site: Site): Pattern {
  if (typeof source !== "string") return site.refuse("must be a text");
  try {
    return compilePattern(source);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    return site.refuse(`is a pattern that is not accepted: ${error.message}`);
  }
}

/** Returns the size of a value, or undefined for a value that the keyword is not about. */
type Measure = (value: JsonValue, run: SchemaRun) => number | undefined;

function atLeast(measure: Measure, unit: string): Keyword {
  return (value, site) => {
    const least = readCount(value, site);
    return (found, run) =>
      (measure(found, run) ?? least) >= least || run.fail(`must have ${least} ${unit} or more`);
  };
}

function atMost(measure: Measure, unit: string): Keyword {
  return (value, site) => {
    const most = readCount(value, site);
    return (found, run) =>
      (measure(found, run) ?? most) <= most || run.fail(`must have at most ${most} ${unit}`);
  };
}

/** The canonical text of a value: equal values have equal texts. Costs steps by its length. */
function canonicalText(value: JsonValue, run: SchemaRun): string {
  const text = canonicalJson(value);
  run.spend(typeof value === "object" ? 8 + text.length : 4 + (text.length >> 3));
  return text;
}

/** Returns whether the value fits, and reports to the run what does not. */
export type Check = (value: JsonValue, run: SchemaRun) => boolean;

/**
 * One value being checked: the current place, the issues found, and the budget left (T27). A schema can demand unbounded
 * work: branches that double at each level, reference cycles, patterns over long texts.
 */
export class SchemaRun {
  readonly path: (string | number)[] = [];
  #issues: InputIssue[] = [];
  #stepsLeft = MOST_STEPS;
  #depth = 0;

  get issues(): readonly InputIssue[] {
    return this.#issues;
  }

  /** A field, not a method, so that it can be passed as a function. */
  readonly spend = (steps: number): void => {
    this.#stepsLeft -= steps;
    if (!(this.#stepsLeft >= 0)) {
      throw new OverBudget(
        "it takes too long to check against the schema; send shorter texts or less at a time",
      );
    }
  };

  /** The message is the rest of a sentence about the value and never repeats it, because it may be a secret. */
  fail(message: string): false {
    this.spend(20);
    if (this.#issues.length < MOST_ISSUES) {
      this.#issues.push({ path: formatPath(this.path), message });
    }
    return false;
  }

  every(checks: readonly Check[], value: JsonValue): boolean {
    this.spend(6);
    this.#depth += 1;
    if (this.#depth > DEEPEST) {
      throw new OverBudget("the schema refers to itself without end at this place");
    }
    const fits = all(checks, (check) => check(value, this));
    this.#depth -= 1;
    return fits;
  }

  below(step: string | number, check: Check, value: JsonValue): boolean {
    this.path.push(step);
    const fits = check(value, this);
    this.path.pop();
    return fits;
  }

  /** Runs a check without reporting. Returns undefined when it fits, otherwise the issues. */
  attempt(check: Check, value: JsonValue): readonly InputIssue[] | undefined {
    this.spend(20);
    const reported = this.#issues;
    this.#issues = [];
    const fits = check(value, this);
    const found = this.#issues;
    this.#issues = reported;
    return fits ? undefined : found;
  }

  report(issues: readonly InputIssue[]): false {
    this.#issues.push(...issues.slice(0, MOST_ISSUES - this.#issues.length));
    return false;
  }
}

/** Whether all hold. Tests all of them, so that one answer lists all issues. */
function all<Item>(items: readonly Item[], holds: (item: Item, index: number) => boolean): boolean {
  let fits = true;
  for (const [index, item] of items.entries()) if (!holds(item, index)) fits = false;
  return fits;
}

/** Thrown through all checks, including `not`, so that an exhausted budget never counts as a pass. */
export class OverBudget extends Error {}

const MOST_ISSUES = 20;
/** Takes 20 to 70 ms, whatever the steps are. 90,000 numbers with two rules each need two thirds of it. */
const MOST_STEPS = 1_500_000;
const DEEPEST = 300;

const properties: Keyword = (value, site) => {
  const checks = readSchemaMap(value, site);
  return eachEntry((name, found, run) => {
    const check = checks.get(name);
    return check === undefined || run.below(name, check, found);
  });
};

const patternProperties: Keyword = (value, site) => {
  const rules = [...readSchemaMap(value, site)].map(
    ([source, check]) => [readPattern(source, site), check] as const,
  );
  return eachEntry((name, found, run) =>
    all(
      rules,
      ([pattern, check]) => !pattern.test(name, run.spend) || run.below(name, check, found),
    ),
  );
};

/** Applies to names that neither `properties` nor `patternProperties` beside it cover. */
const additionalProperties: Keyword = (value, site) => {
  const known = new Set(Object.keys(readObject(site.schema["properties"] ?? {}, site)));
  const sources = Object.keys(readObject(site.schema["patternProperties"] ?? {}, site));
  const patterns = sources.map((source) => readPattern(source, site));
  const check = value === false ? unknownName : site.compile(value);
  return eachEntry((name, found, run) => {
    if (known.has(name) || patterns.some((pattern) => pattern.test(name, run.spend))) return true;
    return run.below(name, check, found);
  });
};

const unknownName: Check = (_value, run) => run.fail("is not a known name here; leave it out");

const propertyNames: Keyword = (value, site) => {
  const check = site.compile(value);
  return eachEntry((name, _found, run) => run.below(name, check, name));
};

const required: Keyword = (value, site) => {
  const names = readNames(value, site);
  return ofObject((object, run) => hasAll(object, names, run));
};

const dependentRequired: Keyword = (value, site) =>
  dependent(
    Object.entries(readObject(value, site)).map(([name, list]) => {
      const names = readNames(list, site);
      return [name, ofObject((object, run) => hasAll(object, names, run))];
    }),
  );

const dependentSchemas: Keyword = (value, site) => dependent([...readSchemaMap(value, site)]);

/** Applies each check to objects that have a property of its name. */
function dependent(rules: readonly (readonly [name: string, check: Check])[]): Check {
  return ofObject((object, run) =>
    all(rules, ([name, check]) => !Object.hasOwn(object, name) || check(object, run)),
  );
}

function hasAll(object: JsonObject, names: readonly string[], run: SchemaRun): boolean {
  return all(names, (name) => {
    run.spend(1);
    return Object.hasOwn(object, name) || run.below(name, missing, null);
  });
}

const missing: Check = (_value, run) => run.fail("is missing");

const prefixItems: Keyword = (value, site) => {
  const checks = readSchemas(value, site);
  return ofArray((list, run) =>
    all(list.slice(0, checks.length), (entry, index) =>
      run.below(index, checks[index] as Check, entry),
    ),
  );
};

/** Applies to the entries after those that `prefixItems` beside it covers. */
const items: Keyword = (value, site) => {
  if (Array.isArray(value)) {
    site.refuse('must be one schema; a list of schemas is written as "prefixItems" since 2020-12');
  }
  const prefix = site.schema["prefixItems"];
  const first = Array.isArray(prefix) ? prefix.length : 0;
  const check = value === false ? surplusEntry : site.compile(value);
  return ofArray((list, run) =>
    all(list, (entry, index) => {
      if (index < first) return true;
      run.spend(4);
      return run.below(index, check, entry);
    }),
  );
};

const surplusEntry: Check = (_value, run) => run.fail("is one entry too many; leave it out");

/** `minContains` and `maxContains` restrict nothing without it. */
const contains: Keyword = (value, site) => {
  const check = site.compile(value);
  const { minContains = 1, maxContains = Number.MAX_SAFE_INTEGER } = site.schema;
  const [least, most] = [readCount(minContains, site), readCount(maxContains, site)];
  return ofArray((list, run) => {
    const fitting = list.filter((entry) => run.attempt(check, entry) === undefined).length;
    if (fitting < least) return run.fail(`must contain ${least} or more entries of a certain kind`);
    if (fitting > most) return run.fail(`must contain at most ${most} entries of a certain kind`);
    return true;
  });
};

const checkedByContains: Keyword = (value, site) => {
  readCount(value, site);
  return undefined;
};

/** Uses a set of canonical texts: comparing all pairs of 8,000 small objects takes 1.7 s in ajv. */
const uniqueItems: Keyword = (value, site) => {
  if (typeof value !== "boolean") site.refuse("must be true or false");
  if (value === false) return undefined;
  return ofArray((list, run) => {
    const seen = new Set<string>();
    for (const entry of list) seen.add(canonicalText(entry, run));
    return seen.size === list.length || run.fail("must not have two equal entries");
  });
};

/** Checks objects only; every other value fits. */
function ofObject(check: (object: JsonObject, run: SchemaRun) => boolean): Check {
  return (value, run) => !isJsonObject(value) || check(value, run);
}

/** Checks all entries of an object, without stopping at the first issue. */
function eachEntry(check: (name: string, value: JsonValue, run: SchemaRun) => boolean): Check {
  return ofObject((object, run) =>
    all(Object.entries(object), ([name, value]) => {
      run.spend(4);
      return check(name, value, run);
    }),
  );
}

/** Checks arrays only; every other value fits. */
function ofArray(check: (list: readonly JsonValue[], run: SchemaRun) => boolean): Check {
  return (value, run) => !Array.isArray(value) || check(value, run);
}

function countProperties(value: JsonValue, run: SchemaRun): number | undefined {
  if (!isJsonObject(value)) return undefined;
  const count = Object.keys(value).length;
  run.spend(count);
  return count;
}

function countItems(value: JsonValue): number | undefined {
  return Array.isArray(value) ? value.length : undefined;
}

export const CONTAINER_KEYWORDS: Readonly<Record<string, Keyword>> = {
  properties,
  patternProperties,
  additionalProperties,
  required,
  propertyNames,
  dependentRequired,
  dependentSchemas,
  minProperties: atLeast(countProperties, "properties"),
  maxProperties: atMost(countProperties, "properties"),
  prefixItems,
  items,
  contains,
  minContains: checkedByContains,
  maxContains: checkedByContains,
  minItems: atLeast(countItems, "entries"),
  maxItems: atMost(countItems, "entries"),
  uniqueItems,
};

const allOf: Keyword = (value, site) => {
  const branches = readSchemas(value, site);
  return (found, run) => run.every(branches, found);
};

const anyOf: Keyword = (value, site) => {
  const branches = readSchemas(value, site);
  return (found, run) => {
    const tries: (readonly InputIssue[])[] = [];
    for (const branch of branches) {
      const issues = run.attempt(branch, found);
      if (issues === undefined) return true;
      tries.push(issues);
    }
    return fitsNone(tries, run);
  };
};

const oneOf: Keyword = (value, site) => {
  const branches = readSchemas(value, site);
  return (found, run) => {
    const tries = branches.map((branch) => run.attempt(branch, found));
    const failed = tries.filter((issues) => issues !== undefined);
    const fitting = tries.length - failed.length;
    if (fitting === 1) return true;
    if (fitting === 0) return fitsNone(failed, run);
    return run.fail(`must fit exactly one of ${tries.length} forms, but fits ${fitting}`);
  };
};

/** Reports the issues of the form with the fewest: most likely the sender meant that one. */
function fitsNone(tries: readonly (readonly InputIssue[])[], run: SchemaRun): false {
  run.fail(`fits none of the ${tries.length} allowed forms`);
  return run.report(tries.reduce((best, issues) => (issues.length < best.length ? issues : best)));
}

const not: Keyword = (value, site) => {
  const check = site.compile(value);
  return (found, run) =>
    run.attempt(check, found) !== undefined || run.fail("has a form that is not allowed");
};

const condition: Keyword = (value, site) => {
  const check = site.compile(value);
  const { then = true, else: otherwise = true } = site.schema;
  const [onTrue, onFalse] = [site.compile(then, "then"), site.compile(otherwise, "else")];
  return (found, run) =>
    run.attempt(check, found) === undefined ? onTrue(found, run) : onFalse(found, run);
};

/** Compiled here so that unsupported keywords in it are found; applied by `if` beside it. */
const compiledOnly: Keyword = (value, site) => {
  site.compile(value);
  return undefined;
};

const definitions: Keyword = (value, site) => {
  readSchemaMap(value, site);
  return undefined;
};

/** References stay inside the schema: nothing is fetched, and no name selects what is loaded (T18). */
const reference: Keyword = (value, site) => {
  if (typeof value !== "string") return site.refuse("must be a text");
  if (value !== "#" && !value.startsWith("#/")) {
    return site.refuse('may only point into the same schema, like "#/$defs/name"');
  }
  return site.resolve(value);
};

/** Pairs, because an object with a `then` would be treated as a promise. */
export const LOGIC_KEYWORDS: readonly (readonly [string, Keyword])[] = [
  ["$ref", reference],
  ["$defs", definitions],
  ["definitions", definitions],
  ["allOf", allOf],
  ["anyOf", anyOf],
  ["oneOf", oneOf],
  ["not", not],
  ["if", condition],
  ["then", compiledOnly],
  ["else", compiledOnly],
];

const TYPES = ["string", "number", "integer", "boolean", "null", "object", "array"] as const;

const type: Keyword = (value, site) => {
  const wanted = Array.isArray(value) ? value : [value];
  const isKnown = wanted.every((name) => (TYPES as readonly JsonValue[]).includes(name));
  if (!isKnown || wanted.length === 0) site.refuse(`must be one or several of ${TYPES.join(", ")}`);
  const names = new Set(wanted as string[]);
  const sentence = `must be ${[...names].map(withArticle).join(" or ")}`;
  return (found, run) => {
    const actual = typeName(found);
    if (names.has(actual)) return true;
    if (actual === "number" && names.has("integer") && Number.isInteger(found)) return true;
    return run.fail(`${sentence}, not ${withArticle(actual)}`);
  };
};

function typeName(value: JsonValue): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function withArticle(name: string): string {
  if (name === "null") return name;
  return `${/^[aio]/.test(name) ? "an" : "a"} ${name}`;
}

const enumeration: Keyword = (value, site) => {
  if (!Array.isArray(value)) return site.refuse("must be a list");
  const allowed = new Set(value.map(canonicalJson));
  const sentence = `must be one of ${shorten([...allowed].join(", "))}`;
  return (found, run) => allowed.has(canonicalText(found, run)) || run.fail(sentence);
};

const constant: Keyword = (value) => {
  const only = canonicalJson(value);
  return (found, run) => canonicalText(found, run) === only || run.fail(`must be ${shorten(only)}`);
};

function shorten(text: string): string {
  return text.length <= 300 ? text : `${text.slice(0, 300)}…`;
}

/** Counts characters, not UTF-16 units. */
function countCharacters(text: JsonValue, run: SchemaRun): number | undefined {
  if (typeof text !== "string") return undefined;
  run.spend(text.length >> 3);
  let length = text.length;
  for (let at = 0; at < text.length; at += 1) {
    if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) length -= 1;
  }
  return length;
}

const patternKeyword: Keyword = (value, site) => {
  const compiled = readPattern(value, site);
  const sentence = `must match the pattern ${shorten(String(value))}`;
  return (found, run) =>
    typeof found !== "string" || compiled.test(found, run.spend) || run.fail(sentence);
};

function limit(words: string, holds: (number: number, limit: number) => boolean): Keyword {
  return (value: JsonValue, site: Site) => {
    const bound = readNumber(value, site);
    return (found, run) =>
      typeof found !== "number" || holds(found, bound) || run.fail(`must be ${words} ${bound}`);
  };
}

const multipleOf: Keyword = (value, site) => {
  const factor = readNumber(value, site);
  if (!(factor > 0)) site.refuse("must be above 0");
  return (found, run) =>
    typeof found !== "number" ||
    isMultiple(found, factor, run) ||
    run.fail(`must be a multiple of ${factor}`);
};

/** Exact on decimal texts, which are what people see: in binary, 0.3 is not a multiple of 0.1. */
function isMultiple(number: number, factor: number, run: SchemaRun): boolean {
  run.spend(60);
  const [a, b] = [decimal(number), decimal(factor)];
  const shift = Math.max(a.places, b.places);
  return (
    (a.digits * 10n ** BigInt(shift - a.places)) % (b.digits * 10n ** BigInt(shift - b.places)) ===
    0n
  );
}

function decimal(number: number): { digits: bigint; places: number } {
  const [mantissa = "0", exponent = "0"] = String(number).split("e");
  const [whole = "0", fraction = ""] = mantissa.split(".");
  const places = fraction.length - Number(exponent);
  const digits = BigInt(whole + fraction);
  return places >= 0 ? { digits, places } : { digits: digits * 10n ** BigInt(-places), places: 0 };
}

export const VALUE_KEYWORDS: Readonly<Record<string, Keyword>> = {
  type,
  enum: enumeration,
  const: constant,
  minLength: atLeast(countCharacters, "characters"),
  maxLength: atMost(countCharacters, "characters"),
  pattern: patternKeyword,
  minimum: limit("at least", (number, bound) => number >= bound),
  maximum: limit("at most", (number, bound) => number <= bound),
  exclusiveMinimum: limit("above", (number, bound) => number > bound),
  exclusiveMaximum: limit("below", (number, bound) => number < bound),
  multipleOf,
};
