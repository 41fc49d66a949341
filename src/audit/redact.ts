import { SallyportError } from "../model/errors.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { hmacSha256Hex } from "../util/hash.ts";
import { JSON_LIMITS, type JsonObject, type JsonValue } from "../util/json.ts";
import {
  createKeyTest,
  findSecrets,
  type KeyVerdict,
  type SecretKey,
  type Span,
} from "./secret-shapes.ts";

export interface RedactorOptions {
  /**
   * At least 16 random bytes, kept outside the database. With it equal secrets of one tenant can be recognised as
   * equal, and cannot be guessed without the key; without it every secret looks the same.
   */
  readonly key?: Uint8Array | string;
  /** Names of fields that hold secrets, in addition to the built-in ones. */
  readonly secretKeys?: readonly SecretKey[];
  /** Names for which the built-in list is wrong, for instance `token` in a parser. */
  readonly plainKeys?: readonly string[];
  /** Paths that hold a secret whatever their name: `input.card.number`, `items.*.code`. */
  readonly secretPaths?: readonly SecretPath[];
  /** Whether texts are searched for strings that look like a secret. Default true. */
  readonly scan?: boolean;
}

/** Returns the same object when there is nothing to redact, the usual case. Shape: callback, a store's `redact`. */
export type Redactor = (tenant: string, data: JsonObject) => JsonObject;

/**
 * Redacts audit data before it is stored: by the name of the field, by its path and, as a second line, by the shape of
 * the text. A secret becomes `{"$redacted":"hmac-sha256:…"}`, or `{"$redacted":"secret"}` without a key; inside a
 * longer text its part becomes `[redacted:…]`. Secrets that were found are also removed from the other texts of the
 * same data, because error messages often repeat them. Throws payload_too_large for data that is too deep to be stored.
 */
export function createRedactor(options: RedactorOptions): Redactor {
  const { key, secretPaths = [], scan = true } = options;
  const find = scan ? findSecrets : () => undefined;
  const tree = secretPathTree(secretPaths);
  const testKey = createKeyTest(options);
  const judge = remember((name) => ({ verdict: testKey(name), spans: find(name) }));
  const tagOf = remember(createTags(key));
  return (tenant, data) => {
    const walk: Walk = { tag: tagOf(tenant), judge, find, known: undefined };
    const redacted = redactObject(data, walk, 1, tree);
    if (walk.known === undefined || walk.known.size === 0) return redacted;
    return withoutKnown(redacted, walk.known, walk.tag) as JsonObject;
  };
}

interface Walk {
  readonly tag: Tag;
  /** What a name implies for its value, and where the name itself holds a secret. */
  readonly judge: (name: string) => { verdict: KeyVerdict; spans: readonly Span[] | undefined };
  readonly find: (text: string) => readonly Span[] | undefined;
  known: KnownSecrets | undefined;
}

function redactObject(object: JsonObject, walk: Walk, depth: number, tree?: PathTree): JsonObject {
  checkDepth(depth);
  let copy: JsonObject | undefined;
  for (const name of Object.keys(object)) {
    const value = object[name] as JsonValue;
    const { verdict, spans } = walk.judge(name);
    const below = tree?.step(name);
    const isHidden = below?.isEnd || (verdict !== "plain" && isSecret(value, verdict));
    const next = isHidden ? hide(value, walk, depth) : redactValue(value, walk, depth, below);
    if (next === value && spans === undefined) continue;
    copy ??= { ...object };
    if (spans !== undefined) delete copy[name];
    put(copy, spans === undefined ? name : markSpans(name, spans, walk), next);
  }
  return copy ?? object;
}

function redactArray(array: JsonValue[], walk: Walk, depth: number, tree?: PathTree): JsonValue[] {
  checkDepth(depth);
  let copy: JsonValue[] | undefined;
  for (let index = 0; index < array.length; index += 1) {
    const value = array[index] as JsonValue;
    const below = tree?.step(String(index));
    const next = below?.isEnd ? hide(value, walk, depth) : redactValue(value, walk, depth, below);
    if (next === value) continue;
    copy ??= [...array];
    copy[index] = next;
  }
  return copy ?? array;
}

function redactValue(value: JsonValue, walk: Walk, depth: number, tree?: PathTree): JsonValue {
  if (typeof value === "string") return redactText(value, walk, depth);
  if (typeof value !== "object" || value === null || isRedacted(value)) return value;
  if (Array.isArray(value)) return redactArray(value, walk, depth + 1, tree);
  return redactObject(value, walk, depth + 1, tree);
}

function redactText(text: string, walk: Walk, depth: number): JsonValue {
  const spans = walk.find(text);
  if (spans === undefined) return text;
  const isWhole = spans[0]?.start === 0 && spans[0].end === text.length;
  return isWhole ? hide(text, walk, depth) : markSpans(text, spans, walk);
}

/** Booleans and null are not secrets, and a number of tokens is a count. */
function isSecret(value: JsonValue, verdict: KeyVerdict): boolean {
  if (typeof value === "number") return verdict === "secret";
  return typeof value !== "boolean" && value !== "";
}

function hide(value: JsonValue, walk: Walk, depth: number): JsonValue {
  if (value === null || value === undefined || isRedacted(value)) return value;
  walk.known ??= new Set();
  addKnown(walk.known, value);
  const tag = walk.tag(value);
  // The replacement object is one level deeper than a text, which at the deepest level would be one too many.
  return depth < JSON_LIMITS.maxDepth ? { $redacted: tag } : tagInText(tag);
}

function markSpans(text: string, spans: readonly Span[], walk: Walk): string {
  walk.known ??= new Set();
  let result = "";
  let done = 0;
  for (const { start, end } of spans) {
    const secret = text.slice(start, end);
    addKnown(walk.known, secret);
    result += text.slice(done, start) + tagInText(walk.tag(secret));
    done = end;
  }
  return result + text.slice(done);
}

/** An assignment to `__proto__` would change the copy's prototype instead of adding a property. */
function put(object: JsonObject, name: string, value: JsonValue): void {
  Object.defineProperty(object, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}

function checkDepth(depth: number): void {
  if (depth <= JSON_LIMITS.maxDepth) return;
  const hint = "Flatten the data, or store a reference to it.";
  throw new SallyportError("payload_too_large", { depth: JSON_LIMITS.maxDepth, hint });
}

/** Names and tenants come from outside, so the cache is bounded in number and length. */
function remember<Result>(make: (name: string) => Result): (name: string) => Result {
  const results = new Map<string, Result>();
  return (name) => {
    const known = results.get(name);
    if (known !== undefined) return known;
    const result = make(name);
    if (name.length > 256) return result;
    if (results.size >= 4_096) results.clear();
    results.set(name, result);
    return result;
  };
}

/** Secrets found in one piece of data, so that they can be removed from the rest of it. */
type KnownSecrets = Set<string>;

const MAX_KNOWN = 100;
const SHORTEST = 8;
const SHORTEST_WORD = 12;
const MARK = tagInText("hmac-sha256:");

/** Short texts and plain words are excluded: `required` under `password` must not redact a whole report. */
function addKnown(known: KnownSecrets, value: JsonValue): void {
  if (known.size >= MAX_KNOWN) return;
  if (typeof value === "string") {
    const isWord = /^\p{L}*$/u.test(value);
    if (value.length >= (isWord ? SHORTEST_WORD : SHORTEST) && !MARK.includes(value))
      known.add(value);
  } else if (typeof value === "object" && value !== null) {
    for (const part of Object.values(value)) addKnown(known, part);
  }
}

/** The data with every known secret redacted wherever a text or a name repeats it. */
function withoutKnown(value: JsonValue, known: KnownSecrets, tag: Tag): JsonValue {
  // Longest first, or a secret that contains another one would be split and its rest shown.
  const secrets = [...known].sort((a, b) => b.length - a.length);
  const clean = (text: string): string => {
    let result = text;
    for (const secret of secrets) {
      if (result.includes(secret)) result = result.replaceAll(secret, () => tagInText(tag(secret)));
    }
    return result;
  };
  const walk = (part: JsonValue): JsonValue => {
    if (typeof part === "string") return clean(part);
    if (typeof part !== "object" || part === null || isRedacted(part)) return part;
    if (Array.isArray(part)) return part.map(walk);
    return Object.fromEntries(
      Object.entries(part).map(([name, inner]) => [clean(name), walk(inner)]),
    );
  };
  return walk(value);
}

/** Names from the top, joined by dots or as an array; `*` matches any name or index. */
type SecretPath = string | readonly string[];

/** The position of a walk among the secret paths. `step` is undefined where nothing below can be secret. */
interface PathTree {
  readonly isEnd: boolean;
  step(name: string): PathTree | undefined;
}

/** All paths in one tree, so that a walk compares each name once, whatever the number of paths. */
function secretPathTree(paths: readonly SecretPath[]): PathTree | undefined {
  if (paths.length === 0) return undefined;
  const root: Node = { isEnd: false, named: new Map(), any: undefined };
  for (const path of paths) {
    let node = root;
    for (const name of typeof path === "string" ? path.split(".") : path) node = child(node, name);
    node.isEnd = true;
  }
  return treeOf([root]);
}

interface Node {
  isEnd: boolean;
  readonly named: Map<string, Node>;
  any: Node | undefined;
}

function child(node: Node, name: string): Node {
  const known = name === "*" ? node.any : node.named.get(name);
  if (known !== undefined) return known;
  const added: Node = { isEnd: false, named: new Map(), any: undefined };
  if (name === "*") node.any = added;
  else node.named.set(name, added);
  return added;
}

/**
 * A star and a name can both match, so a position is a set of nodes. Results are cached: names outside all paths share
 * one.
 */
function treeOf(nodes: readonly Node[]): PathTree {
  const names = new Set(nodes.flatMap((node) => [...node.named.keys()]));
  const steps = new Map<string, PathTree | undefined>();
  return {
    isEnd: nodes.some((node) => node.isEnd),
    step(name) {
      const wanted = names.has(name) ? name : "*";
      if (!steps.has(wanted)) {
        const next = nodes.flatMap((node) => [node.named.get(wanted), node.any]);
        const found = next.filter((node) => node !== undefined);
        steps.set(wanted, found.length === 0 ? undefined : treeOf(found));
      }
      return steps.get(wanted);
    },
  };
}

/** The replacement of a secret: `secret`, or `hmac-sha256:` and 64 digits. */
type Tag = (value: JsonValue) => string;

const MIN_KEY_BYTES = 16;
const TAG = /^(?:secret|hmac-sha256:[0-9a-f]{64})$/;

/**
 * Tags by tenant. Each tenant has its own key, derived from the given one: equal secrets of one tenant are recognised,
 * those of two tenants are not, and without the key not even a four-digit number can be guessed (T23).
 */
function createTags(key: Uint8Array | string | undefined): (tenant: string) => Tag {
  if (key === undefined) return () => () => "secret";
  if (Buffer.byteLength(key) < MIN_KEY_BYTES) {
    const hint = `Give ${MIN_KEY_BYTES} random bytes or more, and keep them outside the database.`;
    throw new SallyportError("invalid_input", { what: "redaction key", hint });
  }
  return (tenant) => {
    const tenantKey = hmacSha256Hex(key, `sallyport redaction v1\n${tenant}`);
    return (value) => `hmac-sha256:${hmacSha256Hex(tenantKey, canonicalJson(value))}`;
  };
}

function tagInText(tag: string): string {
  return `[redacted:${tag}]`;
}

/** True for the output of a redactor; a value that imitates it is redacted like any other. */
function isRedacted(value: JsonValue): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const { $redacted: tag, ...rest } = value;
  return typeof tag === "string" && TAG.test(tag) && Object.keys(rest).length === 0;
}
