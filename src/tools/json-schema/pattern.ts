import {
  type Program,
  ProgramTooLong,
  parsePattern,
  type Step,
  UnsupportedPattern,
} from "./pattern-program.ts";

/** Reports work done; throws when the budget is exhausted. */
type Spend = (steps: number) => void;

export interface Pattern {
  /** Whether the text contains a match. The work is at most proportional to program size times text length. */
  test(text: string, spend: Spend): boolean;
}

/**
 * Compiles the `pattern` of a JSON Schema into a matcher without backtracking (T27). `RegExp` needs 5 s for `^(a+)+$` and
 * 28 characters, and the author of a hostile schema also suggests the model's input. Each pair of step and position is
 * visited once, as in RE2's bit-state matcher; a lookahead is a search of its own. Throws PatternError for back
 * references, lookbehind, modifiers, bad syntax, and patterns that are too long.
 */
export function compilePattern(source: string): Pattern {
  if (source.length > LONGEST_SOURCE) {
    throw new PatternError(`it is longer than ${LONGEST_SOURCE} characters`);
  }
  try {
    new RegExp(source, "u");
    const program = parsePattern(source);
    return { test: (text, spend) => new Search(program, text, spend).find() };
  } catch (error) {
    throw new PatternError(problemOf(error), { cause: error });
  }
}

export class PatternError extends Error {}

const LONGEST_SOURCE = 4096;
const LONGEST_TEXT = 256 * 1024;
/** One bit for each step at each position of the text: 8 MiB. */
const MOST_MARKS = 64 * 1024 * 1024;

function problemOf(error: unknown): string {
  if (error instanceof UnsupportedPattern) {
    return `it uses ${error.message}, which cannot be matched in bounded time`;
  }
  if (error instanceof RangeError) return "its groups are nested too deep";
  if (error instanceof ProgramTooLong) return "its repetitions are too large";
  if (error instanceof SyntaxError) return "it is not a regular expression of ECMA-262 (flag u)";
  throw error;
}

/** The visited pairs of step and position. */
interface Marks {
  /** Returns true for the first visit. */
  mark(pair: number): boolean;
}

class Search {
  readonly #program: Program;
  readonly #text: string;
  readonly #spend: Spend;
  readonly #positions: number;

  constructor(program: Program, text: string, spend: Spend) {
    this.#program = program;
    this.#text = text;
    this.#spend = spend;
    this.#positions = text.length + 1;
  }

  find(): boolean {
    const marks = this.#bitMarks();
    for (let at = 0; at < this.#positions; at += 1) {
      if (isLowSurrogate(this.#text, at)) continue;
      // Marks are kept between starts: a pair that failed from one start fails from every start.
      if (this.#matchAt(this.#program.start, at, marks, 1)) return true;
    }
    return false;
  }

  #matchAt(start: number, from: number, marks: Marks, cost: number): boolean {
    const open = [start, from];
    while (open.length > 0) {
      const at = open.pop() as number;
      const index = open.pop() as number;
      this.#spend(cost);
      if (!marks.mark(index * this.#positions + at)) continue;
      const step = this.#program.steps[index] as Step;
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
          // A set instead of a bit field: there may be one search per position, and most visit few pairs.
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
    const pairs = this.#program.steps.length * this.#positions;
    if (this.#positions > LONGEST_TEXT || pairs > MOST_MARKS) this.#spend(Number.POSITIVE_INFINITY);
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

/** No match starts inside a character. */
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
