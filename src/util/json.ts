/**
 * A JSON value. The types are mutable on purpose: `Array.isArray` does not narrow a readonly array out of a union, and
 * the JSON types of other libraries (zod, the AI SDK) would not accept readonly ones.
 */
export type JsonValue = null | boolean | number | string | JsonArray | JsonObject;

export type JsonArray = JsonValue[];

export interface JsonObject {
  [key: string]: JsonValue;
}

/** A read-only JSON value, so that a literal with `as const` fits. */
export type ReadonlyJson =
  | null
  | boolean
  | number
  | string
  | readonly ReadonlyJson[]
  | { readonly [key: string]: ReadonlyJson };

/** Limits of a parser. A caller may change each one. */
export interface JsonLimits {
  /** Size as UTF-8, checked before parsing. */
  readonly maxBytes?: number;
  /** The deepest nesting of objects and arrays; a number has depth 0, `[]` has depth 1. */
  readonly maxDepth?: number;
  /** The number of values, counting every object, array, string, number, boolean and null. */
  readonly maxNodes?: number;
}

export const JSON_LIMITS = {
  maxBytes: 1024 * 1024,
  maxDepth: 64,
  maxNodes: 100_000,
} as const satisfies JsonLimits;

/** The walkers recurse, so depth has a limit that no option can raise: far above any use, far below the call stack. */
export const DEEPEST = 500;

/** A shared object counts once per reference, so that a few shared references cannot cause unbounded work. */
const MOST_NODES = 10 * JSON_LIMITS.maxNodes;

/**
 * True when `JSON.parse(JSON.stringify(value))` returns an equal value, so that storing the text loses nothing. Not
 * plain: undefined anywhere, -0, NaN and the infinities, bigints, functions, symbols, holes and named properties in
 * arrays, class instances, `toJSON`, the key `__proto__` (it survives, but the parsers here reject it), keys that JSON
 * writes with an escape (see below), and values too deep or too large to walk. `canonicalJson` may still reject plain
 * values: it also rejects unsafe integers and lone surrogates. Non-enumerable properties are not checked.
 */
export function isPlainJson(value: unknown): value is JsonValue {
  return isPlain(value, DEEPEST, { nodesLeft: MOST_NODES });
}

interface Budget {
  nodesLeft: number;
}

function isPlain(value: unknown, levelsLeft: number, budget: Budget): boolean {
  budget.nodesLeft -= 1;
  if (budget.nodesLeft < 0) return false;
  switch (typeof value) {
    case "string":
    case "boolean":
      return true;
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0);
    case "object":
      if (value === null) return true;
      if (levelsLeft === 0 || !isPlainContainer(value)) return false;
      return Array.isArray(value)
        ? arePlainElements(value, levelsLeft - 1, budget)
        : arePlainProperties(value, levelsLeft - 1, budget);
    default:
      return false;
  }
}

function isPlainContainer(value: object): boolean {
  if (Object.getOwnPropertySymbols(value).length > 0) return false;
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // An object without a prototype has the same content.
  if (!Array.isArray(value)) return prototype === Object.prototype || prototype === null;
  // Fewer keys than elements means a hole, more means names; one of each is caught because the hole reads as undefined.
  return prototype === Array.prototype && Object.keys(value).length === value.length;
}

function arePlainElements(array: readonly unknown[], levelsLeft: number, budget: Budget): boolean {
  // Not `every`, which skips holes.
  for (let index = 0; index < array.length; index += 1) {
    if (!isPlain(array[index], levelsLeft, budget)) return false;
  }
  return true;
}

function arePlainProperties(object: object, levelsLeft: number, budget: Budget): boolean {
  for (const [key, value] of Object.entries(object)) {
    if (key === "__proto__" || mayBeMisread(key)) return false;
    if (!isPlain(value, levelsLeft, budget)) return false;
  }
  return true;
}

/**
 * `JSON.parse` of Node 24 and 26 may confuse a key written with an escape with another one: after `{"x":0,"a\\":0}` it
 * reads the key in `{"x":0,"a\"":0}` as the earlier one (nodejs/node issue 63785). So such a key does not survive.
 */
function mayBeMisread(key: string): boolean {
  return JSON.stringify(key).length > key.length + 2;
}

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const frozen = new WeakSet<object>();

/** Freezes plain data recursively, in place. Pass a copy if other code holds the value. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || frozen.has(value)) return value;
  frozen.add(value);
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}

/** True for values frozen by `deepFreeze`, which can never change. */
export function isDeepFrozen(value: unknown): boolean {
  return typeof value !== "object" || value === null || frozen.has(value);
}
