import { canonicalJson } from "../../util/canonical-json.ts";
import type { JsonValue } from "../../util/json.ts";
import {
  atLeast,
  atMost,
  canonicalText,
  type Keyword,
  readNumber,
  readPattern,
  type Site,
} from "./keyword.ts";
import type { Run } from "./run.ts";

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
function countCharacters(text: JsonValue, run: Run): number | undefined {
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
function isMultiple(number: number, factor: number, run: Run): boolean {
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
