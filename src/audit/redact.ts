import { SallyportError } from "../model/errors.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { hmacSha256Hex } from "../util/hash.ts";
import { JSON_LIMITS, type JsonObject, type JsonValue } from "../util/json.ts";

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

/** The position of a secret in a text, as UTF-16 offsets. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * One family of secrets that can be recognised by their shape. `hint` is a cheap test that fails on almost every text.
 * In `find` the secret is the last group that matched, or the whole match, and always its end. Both must take linear
 * time on hostile text (T27): an unbounded repetition comes last in a pattern, so that it never backtracks.
 */
interface Shape {
  readonly hint: RegExp;
  readonly find: RegExp;
  readonly accept?: (secret: string, match: RegExpExecArray) => boolean;
}

/** Key prefixes of vendors. They must follow a non-word character, or `task-…` would contain `sk-…`. */
const VENDOR =
  "(?<![A-Za-z0-9])(?:A[KS]IA[0-9A-Z]{16}|AIza[\\w-]{35}|ya29\\.[\\w-]{20,}|GOCSPX-[\\w-]{20,}|" +
  "gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\\w{20,}|glpat-[\\w-]{16,}|xox[abeoprs]-[\\w-]{10,}|xapp-[\\w-]{16,}|" +
  "[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9]{16,}|sk-[\\w-]{20,}|npm_[A-Za-z0-9]{30,}|" +
  "pypi-[\\w-]{20,}|SG\\.[\\w-]{16,64}\\.[\\w-]{16,}|do[opr]_v1_[0-9a-f]{32,}|" +
  "shp(?:at|ss|ca|pa)_[0-9A-Fa-f]{24,}|hf_[A-Za-z0-9]{24,}|dapi[0-9a-f]{32,}|hv[sb]\\.[\\w-]{20,}|" +
  "AGE-SECRET-KEY-1[0-9A-Z]{20,}|sbp_[0-9a-f]{30,}|lin_api_\\w{20,}|ntn_\\w{20,}|ATATT3[\\w=-]{20,}|" +
  "hooks\\.slack\\.com\\/services\\/[\\w/]{20,})";

const WORD =
  "(?:pass(?:word|wd|phrase|code)|pwd|secret(?:[-_ ]?(?:access[-_]?)?key)?|token|" +
  "(?:api|access|account|private|shared|signing|encryption)[-_ ]?key|credentials?|[?&]sig(?:nature)?)";

/** In quotes up to the quote, with its escapes; in escaped quotes up to the next quote; bare up to a delimiter. */
const VALUE = `(?:"([^"\\\\]*(?:\\\\[^][^"\\\\]*)*)|'([^'\\\\]*(?:\\\\[^][^'\\\\]*)*)|\\\\+["']([^"'\\\\]+)|([^\\s"'\\\\&;,<>=][^\\s"'&;,<>]*))`;

const SHAPES: readonly Shape[] = [
  { hint: new RegExp(VENDOR), find: new RegExp(VENDOR, "g") },
  {
    // A JSON Web Token, signed or encrypted. Without a dot it is any Base64 of a JSON object.
    hint: /eyJ[\w-]{8}/,
    find: /eyJ[\w-]{8,}(?:\.[\w-]*)*/g,
    accept: (secret) => secret.includes("."),
  },
  {
    // A truncated key is a key too: without its end marker the rest of the text is redacted.
    hint: /PRIVATE KEY/,
    find: /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
  },
  {
    hint: /(?:bearer|basic)\s/i,
    find: /\b(?:bearer|basic)\s{1,8}([\w.~+/=-]{8,})/gi,
    accept: (secret) => secret.length >= 16 || /[0-9=]|[a-z][A-Z]/.test(secret),
  },
  {
    // scheme://user:password@host. A slash ends the part before the host, so each one is scanned once.
    hint: /:\/\/[^\s/:@]{0,256}:[^\s/"'<>]{1,256}@/,
    find: /:\/\/[^\s/:@]{0,256}:([^\s/"'<>]{1,256})(?=@)/g,
  },
  {
    hint: /(?:cookie|authorization)["'\\]{0,3}\s{0,4}[:=]/i,
    find: /(?:cookie|authorization)["'\\]{0,3}\s{0,4}[:=][ \t]{0,4}["'\\]{0,3}([^\r\n"'\\]+)/gi,
    accept: (secret, match) => /^c/i.test(match[0]) || looksMade(secret),
  },
  {
    // password=…, "api_key": "…", --token …; and `password: …`, where only unambiguous words count.
    hint: new RegExp(`${WORD}[\\s"'\\\\:=]`, "i"),
    find: new RegExp(
      `${WORD}["'\\\\]{0,4}(?:\\s{0,4}=\\s{0,4}|(\\s{0,4}:\\s{0,4})|(?<=--[\\w-]{0,64})\\s{1,4})${VALUE}`,
      "gi",
    ),
    accept: (secret, match) =>
      match[1] === undefined || match[5] === undefined || /^p/i.test(match[0]) || looksMade(secret),
  },
];

/**
 * Nearly every text holds no secret, so this is the common cost. Three joined patterns take 1.2 µs for ten typical
 * texts, seven single ones 1.9 µs, and a single joined one 1.7 µs, because it can use none of the engine's shortcuts.
 */
const FIRST_LOOK: readonly RegExp[] = [
  new RegExp(VENDOR),
  anyOf(SHAPES.slice(1).filter((shape) => !shape.hint.ignoreCase)),
  anyOf(SHAPES.slice(1).filter((shape) => shape.hint.ignoreCase)),
];

const SHORTEST_TEXT = 8;
/** Both far above legitimate use. A text that is too long or has too many matches is redacted as a whole. */
const LONGEST = 4 * 1024 * 1024;
const MOST = 1_000;

/** The secrets in a text by shape, in order and without overlap; undefined, as almost always, when there are none. */
export function findSecrets(text: string): readonly Span[] | undefined {
  if (text.length < SHORTEST_TEXT) return undefined;
  if (text.length > LONGEST) return [{ start: 0, end: text.length }];
  if (!mayHoldSecret(text)) return undefined;
  let spans: Span[] | undefined;
  for (const shape of SHAPES) {
    if (!shape.hint.test(text)) continue;
    for (const match of text.matchAll(shape.find)) {
      const secret = match.findLast((part) => part !== undefined) ?? "";
      if (secret === "" || isMarked(secret) || shape.accept?.(secret, match) === false) continue;
      spans ??= [];
      const end = match.index + match[0].length;
      spans.push({ start: end - secret.length, end });
      if (spans.length > MOST) return [{ start: 0, end: text.length }];
    }
  }
  return spans && merged(spans);
}

function mayHoldSecret(text: string): boolean {
  for (const look of FIRST_LOOK) if (look.test(text)) return true;
  return false;
}

function anyOf(shapes: readonly Shape[]): RegExp {
  return new RegExp(shapes.map((shape) => shape.hint.source).join("|"), shapes[0]?.hint.flags);
}

/** Natural words are not secrets: "authorization: denied" stays, a run of eight with a digit does not. */
function looksMade(value: string): boolean {
  return value.split(/[\s;,]/).some((run) => run.length >= 8 && /\d/.test(run));
}

/** Already replaced, by a redactor or by stars. */
function isMarked(secret: string): boolean {
  return /^(?:\[redacted:(?:secret|hmac-sha256:[0-9a-f]{64})\]|\*+$)/.test(secret);
}

function merged(spans: Span[]): readonly Span[] {
  const result: { start: number; end: number }[] = [];
  for (const { start, end } of spans.sort((a, b) => a.start - b.start)) {
    const last = result.at(-1);
    if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end);
    else result.push({ start, end });
  }
  return result;
}

/**
 * What the name of a field implies for its value. `counted` is a secret unless it is a number: `tokens: 812` is a bill.
 */
export type KeyVerdict = "plain" | "secret" | "counted";

/** A name, matched like the built-in ones, or a custom test (which must be fast: it sees every new name). */
export type SecretKey = string | ((key: string) => boolean);

/** Whole words, or compounds written as one. `userPassword`, `USER_PASSWORD` and `pass-word` all match. */
const SECRETS = `password passwd passphrase passcode pwd secret secrets token apikey apikeys authorization bearer jwt
  cookie cookies credential credentials creds privatekey accesskey accountkey authkey encryptionkey masterkey sessionkey
  sharedkey signingkey sshkey otp totp mfacode securitycode verificationcode pincode cvv cvc cardnumber ssn`;
const COUNTED = "tokens pass";

/**
 * A last word that makes the value describe the secret instead of being it: `secretRef`, `token_type`, `expires_at`.
 */
const ABOUT = `name names type ref reference arn count counts length policy version expires expiry expiration at in ttl ms
  seconds limit budget usage url uri endpoint status scope scopes issuer required enabled id ids`;
/** Vault's `secret_id` is half of a login, whatever its name says. */
const NEVER_ABOUT = "secretid";

const MAX_WORDS = 3;
const MAX_KEY = 256;

/** Matches words, not substrings: `secretary`, `tokenizer` and `compassion` stay readable. */
export function createKeyTest(options: {
  readonly secretKeys?: readonly SecretKey[];
  readonly plainKeys?: readonly string[];
}): (key: string) => KeyVerdict {
  const { secretKeys = [], plainKeys = [] } = options;
  const named = secretKeys.filter((key) => typeof key === "string").map(joined);
  const tests = secretKeys.filter((key) => typeof key === "function");
  const secrets = new Set([...wordList(SECRETS), ...named]);
  const counted = new Set(wordList(COUNTED));
  const about = new Set(wordList(ABOUT));
  const plain = new Set(plainKeys.map(joined));

  return (key) => {
    if (tests.some((test) => test(key))) return "secret";
    // Field names have few words; longer names are judged by their start.
    const words = splitWords(key.slice(0, MAX_KEY));
    const whole = words.join("");
    if (plain.has(whole)) return "plain";
    if (named.includes(whole)) return "secret";
    if (about.has(words.at(-1) ?? "") && !whole.endsWith(NEVER_ABOUT)) return "plain";
    if (hasAny(words, secrets)) return "secret";
    return hasAny(words, counted) ? "counted" : "plain";
  };
}

function hasAny(words: readonly string[], wanted: ReadonlySet<string>): boolean {
  for (let start = 0; start < words.length; start += 1) {
    let run = "";
    for (const word of words.slice(start, start + MAX_WORDS)) {
      run += word;
      if (wanted.has(run)) return true;
    }
  }
  return false;
}

function joined(key: string): string {
  return splitWords(key).join("");
}

function wordList(text: string): string[] {
  return text.split(/\s+/);
}

/** `X-APIKey2` → `x`, `api`, `key`. Without a regular expression, because the one for `APIKey` takes quadratic time. */
function splitWords(key: string): string[] {
  // Full-width and other compatibility letters are read as the plain ones they look like.
  const text = key.normalize("NFKC");
  const words: string[] = [];
  let word = "";
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    const lower = char.toLowerCase();
    const isLetter = lower !== char.toUpperCase();
    const startsWord = isLetter && lower !== char && !isInsideCapitals(text, at);
    if ((!isLetter || startsWord) && word !== "") {
      words.push(word);
      word = "";
    }
    if (isLetter) word += lower;
  }
  if (word !== "") words.push(word);
  return words;
}

/** True for the P and the I of `APIKey`, not for its A and K. */
function isInsideCapitals(text: string, at: number): boolean {
  const before = text.charAt(at - 1);
  const after = text.charAt(at + 1);
  const isCapital = (char: string) => char.toLowerCase() !== char;
  return isCapital(before) && (after === "" || isCapital(after) || after.toUpperCase() === after);
}
