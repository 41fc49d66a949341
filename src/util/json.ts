/**
 * What JSON can say, and nothing else. The types are mutable on purpose: `Array.isArray` does not narrow a readonly
 * array out of a union, and the JSON types of other libraries (zod, the AI SDK) would not accept readonly ones.
 */
export type JsonValue = null | boolean | number | string | JsonArray | JsonObject;

export type JsonArray = JsonValue[];

export interface JsonObject {
  [key: string]: JsonValue;
}

/** The same for data that is only read, so that a literal written with `as const` fits. */
export type ReadonlyJson =
  | null
  | boolean
  | number
  | string
  | readonly ReadonlyJson[]
  | { readonly [key: string]: ReadonlyJson };

/** How much a reader takes on before it refuses. A caller may tighten or widen each one. */
export interface JsonLimits {
  /** Size as UTF-8, looked at before anything is parsed. */
  readonly maxBytes?: number;
  /** How many objects and arrays may stand inside each other; a lone number has depth 0, `[]` has depth 1. */
  readonly maxDepth?: number;
  /** How many values there may be in all, counting every object, array, string, number, boolean and null. */
  readonly maxNodes?: number;
}

export const JSON_LIMITS = {
  maxBytes: 1024 * 1024,
  maxDepth: 64,
  maxNodes: 100_000,
} as const satisfies JsonLimits;

/** The walkers recurse, so depth has a ceiling that no option can lift: far above any use, far below the call stack. */
export const DEEPEST = 500;

/** An object reachable by many ways counts once for each, so that a small knot of references cannot keep us busy. */
const MOST_NODES = 10 * JSON_LIMITS.maxNodes;

/**
 * True when `JSON.parse(JSON.stringify(value))` gives the same value again, so that nothing is lost by keeping the text.
 * Not plain: undefined anywhere, -0, NaN and the infinities, bigints, functions, symbols, holes in arrays and named
 * properties on them, class instances, `toJSON`, the key `__proto__` (it survives, but no reader of ours takes it),
 * keys that JSON writes with an escape (see below), and what is too deep or too large to walk. Plain values may still be
 * refused by `canonicalJson`, which also looks for unsafe integers and lone surrogates. Properties that are not
 * enumerable are not looked for.
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
  // No prototype is a way of holding the same object, not a difference in what it says.
  if (!Array.isArray(value)) return prototype === Object.prototype || prototype === null;
  // Fewer keys than elements means a hole, more mean names; one of each is caught because the hole reads as undefined.
  return prototype === Array.prototype && Object.keys(value).length === value.length;
}

function arePlainElements(array: readonly unknown[], levelsLeft: number, budget: Budget): boolean {
  // Not `every`, which steps over holes.
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
 * `JSON.parse` of Node 24 and 26 may read a key that is written with an escape as another one: after `{"x":0,"a\\":0}`
 * it takes the key in `{"x":0,"a\"":0}` for the earlier one (nodejs/node issue 63785). So such a key does not survive.
 */
function mayBeMisread(key: string): boolean {
  return JSON.stringify(key).length > key.length + 2;
}

const frozen = new WeakSet<object>();

/** Freezes plain data all the way down, for good. The value itself: give it a copy if somebody else holds it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || frozen.has(value)) return value;
  frozen.add(value);
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}

/** True for what `deepFreeze` has frozen: it will never look different. */
export function isDeepFrozen(value: unknown): boolean {
  return typeof value !== "object" || value === null || frozen.has(value);
}
