import { PatternParser, UnsupportedPattern } from "./pattern-parser.ts";
import { ProgramBuilder, ProgramTooLong, type Step } from "./pattern-program.ts";

/** Tells how much work was done; throws when that was enough. */
export type Spend = (steps: number) => void;

export interface Pattern {
  /** Whether the text contains a match. Work grows with program times text and never faster. */
  test(text: string, spend: Spend): boolean;
}

export class PatternError extends Error {}

const LONGEST_SOURCE = 4096;
const LONGEST_TEXT = 256 * 1024;
/** Marks for each step at each place of the text: 8 MiB. */
const MOST_MARKS = 64 * 1024 * 1024;

/**
 * The `pattern` of a JSON Schema, matched without going back (T27). The engine's own matcher needs 5 s for `^(a+)+$` and
 * 28 characters here, and whoever writes the schema of a tool server also suggests what the model sends to it. Steps and
 * places are marked when visited and never visited again, as in RE2's bit-state matcher; a lookahead is a search of its
 * own. Refused with a PatternError: back references, lookbehind, modifiers, what is too long, and bad syntax.
 */
export function compilePattern(source: string): Pattern {
  if (source.length > LONGEST_SOURCE) {
    throw new PatternError(`it is longer than ${LONGEST_SOURCE} characters`);
  }
  try {
    new RegExp(source, "u");
    const program = new ProgramBuilder();
    const end = program.add({ op: "match" });
    const start = new PatternParser(source).parse()(program, end);
    return { test: (text, spend) => new Search(program.steps, text, spend).find(start) };
  } catch (error) {
    throw new PatternError(problemOf(error), { cause: error });
  }
}

function problemOf(error: unknown): string {
  if (error instanceof UnsupportedPattern) {
    return `it uses ${error.message}, which cannot be matched in bounded time`;
  }
  if (error instanceof RangeError) return "its groups are nested too deep";
  if (error instanceof ProgramTooLong) return "its repetitions are too large";
  if (error instanceof SyntaxError) return "it is not a regular expression of ECMA-262 (flag u)";
  throw error;
}

/** Which pairs of step and place were visited. */
interface Marks {
  /** True the first time. */
  mark(pair: number): boolean;
}

class Search {
  readonly #steps: readonly Step[];
  readonly #text: string;
  readonly #spend: Spend;
  readonly #places: number;

  constructor(steps: readonly Step[], text: string, spend: Spend) {
    this.#steps = steps;
    this.#text = text;
    this.#spend = spend;
    this.#places = text.length + 1;
  }

  find(start: number): boolean {
    const marks = this.#bitMarks();
    for (let at = 0; at < this.#places; at += 1) {
      if (isLowSurrogate(this.#text, at)) continue;
      // Marks are kept from one start to the next: what led nowhere before leads nowhere now.
      if (this.#matchAt(start, at, marks, 1)) return true;
    }
    return false;
  }

  #matchAt(start: number, from: number, marks: Marks, cost: number): boolean {
    const open = [start, from];
    while (open.length > 0) {
      const at = open.pop() as number;
      const index = open.pop() as number;
      this.#spend(cost);
      if (!marks.mark(index * this.#places + at)) continue;
      const step = this.#steps[index] as Step;
      switch (step.op) {
        case "match":
          return true;
        case "split":
          open.push(step.second, at, step.first, at);
          break;
        case "assert":
          if (step.holds(this.#text, at)) open.push(step.next, at);
          break;
        case "look":
          // Few places are visited as a rule, and there may be one search per place: a set instead of a field of bits.
          if (this.#matchAt(step.inner, at, setMarks(), 4) === step.wanted) {
            open.push(step.next, at);
          }
          break;
        case "character": {
          const codePoint = this.#text.codePointAt(at);
          if (codePoint === undefined || !step.test(codePoint)) break;
          open.push(step.next, at + (codePoint > 0xffff ? 2 : 1));
        }
      }
    }
    return false;
  }

  #bitMarks(): Marks {
    const pairs = this.#steps.length * this.#places;
    if (this.#places > LONGEST_TEXT || pairs > MOST_MARKS) this.#spend(Number.POSITIVE_INFINITY);
    this.#spend(pairs >> 10);
    const bits = new Uint32Array((pairs >> 5) + 1);
    return {
      mark(pair) {
        const word = bits[pair >> 5] as number;
        const bit = 1 << (pair & 31);
        if ((word & bit) !== 0) return false;
        bits[pair >> 5] = word | bit;
        return true;
      },
    };
  }
}

/** No match begins inside a character. */
function isLowSurrogate(text: string, at: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00;
}

function setMarks(): Marks {
  const seen = new Set<number>();
  return {
    mark(pair) {
      if (seen.has(pair)) return false;
      seen.add(pair);
      return true;
    },
  };
}
