import { JSON_LIMITS, type JsonObject } from "./json.ts";
import { JsonError, type JsonErrorReason } from "./json-error.ts";

/**
 * The limit of written values. A shared object is written once per reference, so thirty small objects can produce a
 * billion values; ten times the parser's limit is enough for any legitimate value.
 */
const MOST_NODES = 10 * JSON_LIMITS.maxNodes;

/**
 * The canonical text of a JSON value (RFC 8785): keys sorted by UTF-16 units, numbers as ECMAScript writes them, no
 * white space, minimal escapes. Equal values give equal bytes, different values different bytes; `-0` equals `0`.
 *
 * Properties with the value `undefined` are omitted, as in `JSON.stringify`, because optional properties are common.
 * Throws JsonError for anything else that would be dropped, replaced or rounded: undefined or a hole in an array,
 * functions, symbols (also as keys), bigints, NaN, infinities, numbers beyond 2^53 - 1, lone surrogates, Date, Map and
 * other class instances, anything with `toJSON`, the key `__proto__`, cycles and depth over 64. Not checked, because it
 * would cost more than the rest: non-enumerable properties, and named properties of arrays.
 */
export function canonicalJson(value: unknown): string {
  return write(value, { depth: 0, nodesLeft: MOST_NODES, path: [] });
}

/**
 * The same JSON value with its keys in canonical order, so that a value reads the same before and after storage. Values
 * already in order are not copied.
 */
export function inCanonicalOrder<Value>(value: Value): Value {
  if (Array.isArray(value)) {
    const items = value.map(inCanonicalOrder);
    return items.every((item, index) => item === value[index]) ? value : (items as Value);
  }
  if (typeof value !== "object" || value === null) return value;
  const keys = Object.keys(value);
  const sorted = sortKeys([...keys]);
  const members = sorted.map((key) => [key, inCanonicalOrder((value as JsonObject)[key])] as const);
  const isInOrder = members.every(
    ([key, member], index) => key === keys[index] && member === (value as JsonObject)[key],
  );
  return isInOrder ? value : (Object.fromEntries(members) as Value);
}

/**
 * The canonical text of an object whose values for `gaps` are not known yet, as the parts around them: parts and values
 * joined in that order equal `canonicalJson` of the whole. A gap that the object already has stays open.
 */
export function canonicalParts(
  object: JsonObject,
  open: readonly string[],
): { readonly parts: readonly string[]; readonly gaps: readonly string[] } {
  const walk: Walk = { depth: 0, nodesLeft: MOST_NODES, path: [] };
  enter(object, Object.prototype, walk);
  const keys = Object.keys(object);
  for (const key of open) if (!keys.includes(key)) keys.push(key);
  sortKeys(keys);
  const parts: string[] = [];
  const gaps: string[] = [];
  let text = "{";
  let isFirst = true;
  for (const key of keys) {
    const isGap = open.includes(key);
    const written = isGap ? "" : writeMember(object, key, walk);
    if (written === undefined) continue;
    if (!isFirst) text += ",";
    isFirst = false;
    text += isGap ? writeKey(key, walk) : written;
    if (!isGap) continue;
    parts.push(text);
    gaps.push(key);
    text = "";
  }
  parts.push(`${text}}`);
  return { parts, gaps };
}

interface Walk {
  depth: number;
  nodesLeft: number;
  readonly path: (string | number)[];
}

function write(value: unknown, walk: Walk): string {
  walk.nodesLeft -= 1;
  if (walk.nodesLeft < 0) {
    refuse(
      walk,
      "too_many_nodes",
      `there are more than ${MOST_NODES} values`,
      "Use less at a time.",
    );
  }
  switch (typeof value) {
    case "string":
      return writeString(value, walk);
    case "number":
      return writeNumber(value, walk);
    case "boolean":
      return value ? "true" : "false";
    case "object":
      if (value === null) return "null";
      return Array.isArray(value) ? writeArray(value, walk) : writeObject(value, walk);
    default:
      return refuse(walk, "not_json", `JSON has no ${typeof value}`, "Leave it out or convert it.");
  }
}

function writeArray(array: readonly unknown[], walk: Walk): string {
  const depth = enter(array, Array.prototype, walk);
  let text = "[";
  for (let index = 0; index < array.length; index += 1) {
    walk.path[depth] = index;
    if (index > 0) text += ",";
    text += write(array[index], walk);
  }
  walk.depth = depth;
  return `${text}]`;
}

function writeObject(object: object, walk: Walk): string {
  const depth = enter(object, Object.prototype, walk);
  let text = "{";
  for (const key of sortKeys(Object.keys(object))) {
    const written = writeMember(object, key, walk);
    if (written === undefined) continue;
    if (text.length > 1) text += ",";
    text += written;
  }
  walk.depth = depth;
  return `${text}}`;
}

/** `"key":value`; undefined for an omitted property. */
function writeMember(object: object, key: string, walk: Walk): string | undefined {
  walk.path[walk.depth - 1] = key;
  if (key === "__proto__") {
    refuse(walk, "forbidden_key", "the key __proto__ is not accepted", "Rename the key.");
  }
  const value: unknown = (object as JsonObject)[key];
  return value === undefined ? undefined : writeKey(key, walk) + write(value, walk);
}

/** Rejects values that are not plain containers. Returns the index of this one in the path. */
function enter(value: object, prototype: object, walk: Walk): number {
  const actual: unknown = Object.getPrototypeOf(value);
  const isPlain = actual === prototype || actual === null;
  if (!isPlain || typeof (value as { toJSON?: unknown }).toJSON === "function") {
    refuse(
      walk,
      "not_json",
      "it is not a plain object or array",
      "Convert it to plain data first.",
    );
  }
  if (Object.getOwnPropertySymbols(value).length > 0) {
    refuse(walk, "not_json", "it has a symbol as a key", "Use text as keys.");
  }
  const depth = walk.depth;
  if (depth >= JSON_LIMITS.maxDepth) {
    const what = `it is nested deeper than ${JSON_LIMITS.maxDepth} or contains itself`;
    refuse(walk, "too_deep", what, "Use a flatter value.");
  }
  walk.depth = depth + 1;
  return depth;
}

/**
 * Both branches sort by UTF-16 units. Short key lists, often sorted already, are twice as fast with an insertion sort.
 */
function sortKeys(keys: string[]): string[] {
  if (keys.length > 16) return keys.sort();
  for (let next = 1; next < keys.length; next += 1) {
    const key = keys[next] as string;
    let at = next;
    for (; at > 0 && (keys[at - 1] as string) > key; at -= 1) keys[at] = keys[at - 1] as string;
    keys[at] = key;
  }
  return keys;
}

/** `"key":`, cached: most keys come from the gate's own entries. */
function writeKey(key: string, walk: Walk): string {
  const known = keyTexts.get(key);
  if (known !== undefined) return known;
  const text = `${writeString(key, walk)}:`;
  if (keyTexts.size < KEY_TEXTS && key.length <= KEY_LENGTH) keyTexts.set(key, text);
  return text;
}
const keyTexts = new Map<string, string>();
const KEY_TEXTS = 500;
const KEY_LENGTH = 40;

function writeString(text: string, walk: Walk): string {
  // Ids, names and states are short and need no escapes; checking that here takes half the time.
  if (text.length <= 64 && isPrintableAscii(text)) return `"${text}"`;
  if (!text.isWellFormed()) {
    refuse(walk, "lone_surrogate", "a surrogate has no other half", "Use whole characters.");
  }
  // JSON.stringify writes exactly the escapes of RFC 8785.
  return JSON.stringify(text);
}

function isPrintableAscii(text: string): boolean {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return false;
  }
  return true;
}

function writeNumber(number: number, walk: Walk): string {
  if (!(Math.abs(number) <= Number.MAX_SAFE_INTEGER)) {
    const what = "the number is not finite or is beyond 2^53 - 1";
    refuse(walk, "unsafe_number", what, "Use a string.");
  }
  return String(number);
}

function refuse(walk: Walk, reason: JsonErrorReason, what: string, advice: string): never {
  throw new JsonError(reason, { what, advice, path: walk.path.slice(0, walk.depth) });
}
