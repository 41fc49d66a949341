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
