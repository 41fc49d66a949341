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

/** V8 copies shorter strings out of the text; a longer slice would keep the whole text alive. */
const SHORTEST_VIEW = 13;
/** A slice may keep a text up to this size alive, but not a larger one. */
const SMALL_TEXT = 4096;

/** An index that no array has: the path entry of an object that has no key yet. */
export const NO_STEP = -1;

const REST_OF_STRING = "the rest of the string (control characters must be escaped)";
const CHARACTER_ADVICE = "Send whole characters; a text was probably cut in the middle of one.";
const ESCAPE_ADVICE = 'After a backslash write one of "\\/bfnrt, or u and four hexadecimal digits.';
const NUMBER_ADVICE = "Send it as a string.";

/**
 * A cursor over the text that reads strings, numbers and literals of JSON and rejects unsafe ones. The text must be
 * well-formed UTF-16. Scanning uses character codes, which the JIT compiles to tight loops.
 */
export class JsonScanner {
  protected readonly text: string;
  protected at = 0;
  /** The current depth and the key or index at each level: maintained by the parser, used in messages. */
  protected depth = 0;
  protected readonly path: (string | number)[] = [];

  constructor(text: string) {
    this.text = text;
  }

  /** Skips white space and returns the code of the next character, NaN at the end. */
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

  /** Reads a string or key whose opening quote is at the cursor. */
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
    // A slice must not keep a megabyte of request alive for as long as its 36-character id is in use.
    if (at - start >= SHORTEST_VIEW && text.length > SMALL_TEXT) {
      return JSON.parse(text.slice(start - 1, at + 1)) as string;
    }
    return text.slice(start, at);
  }

  /** Finds the end of a string with escapes, starting at `at`; the platform decodes the escapes. */
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

  /** Reads a number whose first digit or minus is at the cursor. */
  protected number(): number {
    const text = this.text;
    const start = this.at;
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
      const what = "the number is beyond 2^53 - 1 and would change";
      this.refuse("unsafe_number", what, NUMBER_ADVICE);
    }
    this.at = at;
    // Subtract instead of negating, which would produce -0, and -0 has no canonical form.
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

  /** Skips `true`, `false` or `null` if it is at the cursor. */
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
