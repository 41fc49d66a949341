import { JsonError, type JsonErrorReason, showCharacter } from "./json-error.ts";

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

/** Strings shorter than this are copied out of the text by V8; longer ones would stay a view on all of it. */
const SHORTEST_VIEW = 13;
/** A text of this size may be kept alive by a string cut out of it; a larger one may not. */
const SMALL_TEXT = 4096;

/** An index no array has: stands in the path where an object has no key yet. */
export const NO_STEP = -1;

const REST_OF_STRING = "the rest of the string (control characters must be escaped)";
const CHARACTER_ADVICE = "Send whole characters; a text was probably cut in the middle of one.";
const ESCAPE_ADVICE = 'After a backslash write one of "\\/bfnrt, or u and four hexadecimal digits.';
const NUMBER_ADVICE = "Send it as a string.";

/**
 * The words of JSON: a cursor over the text that reads strings, numbers and names, and refuses what is unsafe in them.
 * The text must be well-formed UTF-16 already. Scanning goes by character code, which the JIT compiles to tight loops.
 */
export class JsonScanner {
  protected readonly text: string;
  protected at = 0;
  /** How many containers we are in, and the key or index in each of them: kept by the reader, used in messages. */
  protected depth = 0;
  protected readonly path: (string | number)[] = [];

  constructor(text: string) {
    this.text = text;
  }

  /** Moves past white space and gives the code of the character there, NaN at the end. */
  protected token(): number {
    const text = this.text;
    let at = this.at;
    let code = text.charCodeAt(at);
    while (code === SPACE || code === NEWLINE || code === RETURN || code === TAB) {
      at += 1;
      code = text.charCodeAt(at);
    }
    this.at = at;
    return code;
  }

  /** Reads a string whose opening quote is here, keys included. */
  protected string(): string {
    const text = this.text;
    const start = this.at + 1;
    let at = start;
    let code = text.charCodeAt(at);
    while (code !== QUOTE && code !== BACKSLASH && code >= SPACE) {
      at += 1;
      code = text.charCodeAt(at);
    }
    if (code !== QUOTE) return this.#escapedString(at);
    this.at = at + 1;
    // A cut-out string must not keep a megabyte of request alive for as long as somebody holds its 36-character id.
    if (at - start >= SHORTEST_VIEW && text.length > SMALL_TEXT) {
      return JSON.parse(text.slice(start - 1, at + 1)) as string;
    }
    return text.slice(start, at);
  }

  /** Finds the end of a string with escapes, from `at` on, and leaves the unescaping itself to the platform. */
  #escapedString(from: number): string {
    const text = this.text;
    const start = this.at;
    let at = from;
    for (;;) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) break;
      if (code === BACKSLASH) at += 2;
      else if (code >= SPACE) at += 1;
      else this.unexpected(REST_OF_STRING, at);
    }
    this.at = at + 1;
    const value = this.#unescape(start);
    if (!value.isWellFormed()) {
      const what = "half of a surrogate pair is escaped alone";
      this.refuse("lone_surrogate", what, CHARACTER_ADVICE, start);
    }
    return value;
  }

  #unescape(start: number): string {
    try {
      return JSON.parse(this.text.slice(start, this.at)) as string;
    } catch {
      return this.refuse("syntax", "the string has an unknown escape", ESCAPE_ADVICE, start);
    }
  }

  /** Reads a number whose first digit or minus is here. */
  protected number(): number {
    const text = this.text;
    const start = this.at;
    const negative = text.charCodeAt(start) === MINUS;
    const first = negative ? start + 1 : start;
    let at = first;
    let code = text.charCodeAt(at);
    let magnitude = 0;
    // Exact as long as it stays within 2^53, and once above it never comes back, so the check below is exact too.
    while (isDigit(code)) {
      magnitude = magnitude * 10 + (code - ZERO);
      at += 1;
      code = text.charCodeAt(at);
    }
    if (at === first) this.unexpected("a digit", at);
    if (at > first + 1 && text.charCodeAt(first) === ZERO) {
      this.unexpected("no further digit (a number does not start with 0)", first + 1);
    }
    if (code === DOT || code === SMALL_E || code === CAPITAL_E) {
      at = this.#fraction(at);
      const literal = text.slice(first, at);
      magnitude = Number(literal);
      if (magnitude === 0 && /^[0.]*[1-9]/.test(literal)) {
        this.refuse("unsafe_number", "the number is too small and would become 0", NUMBER_ADVICE);
      }
    }
    if (magnitude > Number.MAX_SAFE_INTEGER) {
      const what = "the number lies beyond 2^53 - 1 and would change";
      this.refuse("unsafe_number", what, NUMBER_ADVICE);
    }
    this.at = at;
    // Subtracting, because negating would make -0, which has no canonical form of its own.
    return negative ? 0 - magnitude : magnitude;
  }

  /** From the point or the exponent to the end of the number. */
  #fraction(from: number): number {
    const text = this.text;
    let at = from;
    if (text.charCodeAt(at) === DOT) at = this.#digits(at + 1);
    const code = text.charCodeAt(at);
    if (code !== SMALL_E && code !== CAPITAL_E) return at;
    const sign = text.charCodeAt(at + 1);
    return this.#digits(sign === MINUS || sign === PLUS ? at + 2 : at + 1);
  }

  #digits(from: number): number {
    const text = this.text;
    let at = from;
    while (isDigit(text.charCodeAt(at))) at += 1;
    if (at === from) this.unexpected("a digit", at);
    return at;
  }

  /** Steps over `true`, `false` or `null` if it stands here. */
  protected word(word: string): boolean {
    if (!this.text.startsWith(word, this.at)) return false;
    this.at += word.length;
    return true;
  }

  protected unexpected(wanted: string, at: number = this.at): never {
    const what = `found ${showCharacter(this.text, at)} where ${wanted} should be`;
    return this.refuse("syntax", what, "Send valid JSON (RFC 8259).", at);
  }

  protected refuse(
    reason: JsonErrorReason,
    what: string,
    advice: string,
    at: number = this.at,
  ): never {
    const path = this.path.slice(0, this.depth).filter((step) => step !== NO_STEP);
    throw new JsonError(reason, { what, advice, at, path });
  }
}

export function isNumberStart(code: number): boolean {
  return code === MINUS || isDigit(code);
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}
