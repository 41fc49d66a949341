import { canonical, type Json } from "./canonical.ts";

export interface Difference {
  /** Like `$.items[3].price`. */
  readonly path: string;
  readonly before: Json | undefined;
  readonly after: Json | undefined;
}

/** Where two values differ, as deep as they have the same shape. */
export function jsonDiff(before: Json, after: Json, path = "$"): readonly Difference[] {
  if (canonical(before) === canonical(after)) return [];
  if (Array.isArray(before) && Array.isArray(after)) {
    const length = Math.max(before.length, after.length);
    return Array.from({ length }, (_, at) => member(before[at], after[at], `${path}[${at}]`)).flat();
  }
  if (isObject(before) && isObject(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
    return keys.flatMap((key) =>
      member(own(before, key), own(after, key), `${path}.${JSON.stringify(key).slice(1, -1)}`),
    );
  }
  return [{ path, before, after }];
}

function member(before: Json | undefined, after: Json | undefined, path: string) {
  if (before === undefined || after === undefined) return [{ path, before, after }];
  return jsonDiff(before, after, path);
}

function own(value: Readonly<Record<string, Json>>, key: string): Json | undefined {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

export function isObject(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
