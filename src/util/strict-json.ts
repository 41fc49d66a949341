import {
  DEEPEST,
  JSON_LIMITS,
  type JsonArray,
  type JsonLimits,
  type JsonObject,
  type JsonValue,
} from "./json.ts";
import { JsonError, type JsonErrorReason, showCharacter } from "./json-error.ts";

/**
 * Parses untrusted JSON once, so that no later reader can understand it differently.
 *
 * `JSON.parse` keeps the last of two equal keys, turns 1e400 into Infinity, rounds integers above 2^53, accepts lone
 * surrogates (which all hash alike), builds trees that crash `JSON.stringify`, and on Node 24 and 26 may confuse a key
 * with an escape with one of an earlier text (nodejs/node issue 63785). What runs would then differ from what the
 * reviewer saw. Here every ambiguous text is rejected, and each result has exactly one canonical form, which parses to
 * the same value. Therefore `-0` is read as `0`, as RFC 8785 writes it.
 *
 * Throws JsonError and nothing else for any text or bytes.
 */
export function parseStrictJson(text: string | Uint8Array, limits: JsonLimits = {}): JsonValue {
  const maxBytes = limits.maxBytes ?? JSON_LIMITS.maxBytes;
  const maxDepth = limits.maxDepth ?? JSON_LIMITS.maxDepth;
  const maxNodes = limits.maxNodes ?? JSON_LIMITS.maxNodes;
  if (!(maxDepth >= 0 && maxDepth <= DEEPEST)) {
    throw new RangeError(`maxDepth must be between 0 and ${DEEPEST}, got ${maxDepth}.`);
  }
  if (isLarger(text, maxBytes)) {
    throw new JsonError("too_large", {
      what: `the text is larger than ${maxBytes} bytes`,
      advice: "Send less, or send a reference to the data instead of the data.",
    });
  }
  const source = typeof text === "string" ? text : decodeUtf8(text);
  refuseByteOrderMark(source);
  refuseLoneSurrogates(source);
  return new JsonReader(source, maxDepth, maxNodes).document();
}

function isLarger(text: string | Uint8Array, maxBytes: number): boolean {
  if (typeof text !== "string") return !(text.byteLength <= maxBytes);
  // A UTF-16 unit takes one to three bytes, so the length alone decides for most texts.
  if (text.length * 3 <= maxBytes) return false;
  if (!(text.length <= maxBytes)) return true;
  return new TextEncoder().encode(text).byteLength > maxBytes;
}

// ignoreBOM means "do not strip it": the mark stays visible and is rejected below.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new JsonError("bad_utf8", {
      what: "the bytes are not valid UTF-8",
      advice: "Encode the text as UTF-8.",
    });
  }
}

function refuseByteOrderMark(text: string): void {
  if (text.charCodeAt(0) !== 0xfeff) return;
  throw new JsonError("syntax", {
    what: "the text starts with a byte order mark",
    advice: "Send UTF-8 without a byte order mark.",
    at: 0,
  });
}

/** Finds literal lone surrogates; the scanner checks surrogates written as escapes. */
function refuseLoneSurrogates(text: string): void {
  if (text.isWellFormed()) return;
  // Only a string can contain one, because UTF-8 cannot encode it: the caller is local code.
  throw new JsonError("lone_surrogate", {
    what: "a surrogate has no other half",
    advice: "Send whole characters; a text was probably cut in the middle of one.",
    at: text.search(/\p{Surrogate}/u),
  });
}

const TAB = 0x09;
const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const PLUS = 0x2b;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const CAPITAL_E = 0x45;
const BACKSLASH = 0x5c;
const SMALL_E = 0x65;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** V8 copies shorter strings out of the text; a longer slice would keep the whole text alive. */
const SHORTEST_VIEW = 13;
/** A slice may keep a text up to this size alive, but not a larger one. */
const SMALL_TEXT = 4096;

/** An index that no array has: the path entry of an object that has no key yet. */
const NO_STEP = -1;

const REST_OF_STRING = "the rest of the string (control characters must be escaped)";
const CHARACTER_ADVICE = "Send whole characters; a text was probably cut in the middle of one.";
const ESCAPE_ADVICE = 'After a backslash write one of "\\/bfnrt, or u and four hexadecimal digits.';
const NUMBER_ADVICE = "Send it as a string.";

/**
 * The grammar of `parseStrictJson`: one pass that builds the value. It reads 110 to 150 MB/s of typical records (Node
 * 24, one core of a small virtual machine), about half the speed of `JSON.parse`. It recurses, so `maxDepth` must be
 * far below the limit of the call stack. The text must be well-formed UTF-16. Scanning uses character codes, which the
 * JIT compiles to tight loops.
 */
class JsonReader {
  readonly #text: string;
  readonly #maxDepth: number;
  #nodesLeft: number;
  #at = 0;
  #depth = 0;
  /** The key or index at each level, for messages. */
  readonly #path: (string | number)[] = [];

  constructor(text: string, maxDepth: number, maxNodes: number) {
    this.#text = text;
    this.#maxDepth = maxDepth;
    this.#nodesLeft = maxNodes;
  }

  document(): JsonValue {
    const value = this.#value(this.#token());
    this.#token();
    if (this.#at < this.#text.length) this.#unexpected("the end of the text");
    return value;
  }

  #value(code: number): JsonValue {
    this.#nodesLeft -= 1;
    if (!(this.#nodesLeft >= 0)) {
      const what = "there are more values than the limit allows";
      this.#refuse("too_many_nodes", what, "Send less at a time.");
    }
    if (code === QUOTE) return this.#string();
    if (code === OPEN_OBJECT) return this.#object();
    if (code === OPEN_ARRAY) return this.#array();
    if (isNumberStart(code)) return this.#number();
    if (this.#word("true")) return true;
    if (this.#word("false")) return false;
    if (this.#word("null")) return null;
    return this.#unexpected("a value");
  }

  #object(): JsonObject {
    const depth = this.#enter();
    this.#path[depth] = NO_STEP;
    const object: JsonObject = {};
    let code = this.#token();
    if (code !== CLOSE_OBJECT) {
      for (;;) {
        if (code !== QUOTE) this.#unexpected("a key in double quotes");
        const keyAt = this.#at;
        const key = this.#string();
        this.#path[depth] = key;
        // A value other than undefined means a duplicate key, or one inherited from Object.prototype ("constructor").
        const known = object[key] !== undefined;
        if (known || key === "__proto__") this.#checkKey(object, key, keyAt);
        if (this.#token() !== COLON) this.#unexpected("':'");
        this.#at += 1;
        const value = this.#value(this.#token());
        // Assigning to an inherited name throws where prototypes are frozen, hence defineProperty.
        if (known) define(object, key, value);
        else object[key] = value;
        code = this.#token();
        if (code === CLOSE_OBJECT) break;
        if (code !== COMMA) this.#unexpected("',' or '}'");
        this.#at += 1;
        code = this.#token();
      }
    }
    this.#leave();
    return object;
  }

  #checkKey(object: JsonObject, key: string, at: number): void {
    if (key === "__proto__") {
      this.#refuse("forbidden_key", "the key __proto__ is not accepted", "Rename the key.", at);
    }
    if (Object.hasOwn(object, key)) {
      const what = "this key occurs twice in one object";
      this.#refuse("duplicate_key", what, "Send each key once.", at);
    }
  }

  #array(): JsonArray {
    const depth = this.#enter();
    const array: JsonArray = [];
    let code = this.#token();
    if (code !== CLOSE_ARRAY) {
      for (;;) {
        this.#path[depth] = array.length;
        array.push(this.#value(code));
        code = this.#token();
        if (code === CLOSE_ARRAY) break;
        if (code !== COMMA) this.#unexpected("',' or ']'");
        this.#at += 1;
        code = this.#token();
      }
    }
    this.#leave();
    return array;
  }

  /** Skips the opening bracket. Returns the index of this container in the path. */
  #enter(): number {
    const depth = this.#depth;
    if (depth >= this.#maxDepth) {
      const what = `it is nested deeper than ${this.#maxDepth}`;
      this.#refuse("too_deep", what, "Send a flatter value.");
    }
    this.#depth = depth + 1;
    this.#at += 1;
    return depth;
  }

  #leave(): void {
    this.#depth -= 1;
    this.#at += 1;
  }

  /** Skips white space and returns the code of the next character, NaN at the end. */
  #token(): number {
    const text = this.#text;
    let at = this.#at;
    let code = text.charCodeAt(at);
    while (code === SPACE || code === NEWLINE || code === RETURN || code === TAB) {
      at += 1;
      code = text.charCodeAt(at);
    }
    this.#at = at;
    return code;
  }

  /** Reads a string or key whose opening quote is at the cursor. */
  #string(): string {
    const text = this.#text;
    const start = this.#at + 1;
    let at = start;
    let code = text.charCodeAt(at);
    while (code !== QUOTE && code !== BACKSLASH && code >= SPACE) {
      at += 1;
      code = text.charCodeAt(at);
    }
    if (code !== QUOTE) return this.#escapedString(at);
    this.#at = at + 1;
    // A slice must not keep a megabyte of request alive for as long as its 36-character id is in use.
    if (at - start >= SHORTEST_VIEW && text.length > SMALL_TEXT) {
      return JSON.parse(text.slice(start - 1, at + 1)) as string;
    }
    return text.slice(start, at);
  }

  /** Finds the end of a string with escapes, starting at `at`; the platform decodes the escapes. */
  #escapedString(from: number): string {
    const text = this.#text;
    const start = this.#at;
    let at = from;
    for (;;) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) break;
      if (code === BACKSLASH) at += 2;
      else if (code >= SPACE) at += 1;
      else this.#unexpected(REST_OF_STRING, at);
    }
    this.#at = at + 1;
    const value = this.#unescape(start);
    if (!value.isWellFormed()) {
      const what = "half of a surrogate pair is escaped alone";
      this.#refuse("lone_surrogate", what, CHARACTER_ADVICE, start);
    }
    return value;
  }

  #unescape(start: number): string {
    try {
      return JSON.parse(this.#text.slice(start, this.#at)) as string;
    } catch {
      return this.#refuse("syntax", "the string has an unknown escape", ESCAPE_ADVICE, start);
    }
  }

  /** Reads a number whose first digit or minus is at the cursor. */
  #number(): number {
    const text = this.#text;
    const start = this.#at;
    const negative = text.charCodeAt(start) === MINUS;
    const first = negative ? start + 1 : start;
    let at = first;
    let code = text.charCodeAt(at);
    let magnitude = 0;
    // Exact up to 2^53; a larger value never shrinks again, so the check below is exact too.
    while (isDigit(code)) {
      magnitude = magnitude * 10 + (code - ZERO);
      at += 1;
      code = text.charCodeAt(at);
    }
    if (at === first) this.#unexpected("a digit", at);
    if (at > first + 1 && text.charCodeAt(first) === ZERO) {
      this.#unexpected("no further digit (a number does not start with 0)", first + 1);
    }
    if (code === DOT || code === SMALL_E || code === CAPITAL_E) {
      at = this.#fraction(at);
      const literal = text.slice(first, at);
      magnitude = Number(literal);
      if (magnitude === 0 && /^[0.]*[1-9]/.test(literal)) {
        this.#refuse("unsafe_number", "the number is too small and would become 0", NUMBER_ADVICE);
      }
    }
    if (magnitude > Number.MAX_SAFE_INTEGER) {
      const what = "the number is beyond 2^53 - 1 and would change";
      this.#refuse("unsafe_number", what, NUMBER_ADVICE);
    }
    this.#at = at;
    // Subtract instead of negating, which would produce -0, and -0 has no canonical form.
    return negative ? 0 - magnitude : magnitude;
  }

  /** From the point or the exponent to the end of the number. */
  #fraction(from: number): number {
    const text = this.#text;
    let at = from;
    if (text.charCodeAt(at) === DOT) at = this.#digits(at + 1);
    const code = text.charCodeAt(at);
    if (code !== SMALL_E && code !== CAPITAL_E) return at;
    const sign = text.charCodeAt(at + 1);
    return this.#digits(sign === MINUS || sign === PLUS ? at + 2 : at + 1);
  }

  #digits(from: number): number {
    const text = this.#text;
    let at = from;
    while (isDigit(text.charCodeAt(at))) at += 1;
    if (at === from) this.#unexpected("a digit", at);
    return at;
  }

  /** Skips `true`, `false` or `null` if it is at the cursor. */
  #word(word: string): boolean {
    if (!this.#text.startsWith(word, this.#at)) return false;
    this.#at += word.length;
    return true;
  }

  #unexpected(wanted: string, at: number = this.#at): never {
    const what = `found ${showCharacter(this.#text, at)} where ${wanted} should be`;
    return this.#refuse("syntax", what, "Send valid JSON (RFC 8259).", at);
  }

  #refuse(reason: JsonErrorReason, what: string, advice: string, at: number = this.#at): never {
    const path = this.#path.slice(0, this.#depth).filter((step) => step !== NO_STEP);
    throw new JsonError(reason, { what, advice, at, path });
  }
}

function isNumberStart(code: number): boolean {
  return code === MINUS || isDigit(code);
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

function define(object: JsonObject, key: string, value: JsonValue): void {
  Object.defineProperty(object, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}
