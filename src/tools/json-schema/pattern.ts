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

/** One step of a program. `next`, `first`, `second` and `inner` are indexes of other steps. */
type Step =
  | { readonly op: "match" }
  | { readonly op: "character"; readonly test: CharacterTest; readonly next: number }
  | { readonly op: "split"; readonly first: number; readonly second: number }
  | { readonly op: "assert"; readonly holds: Assertion; readonly next: number }
  | {
      readonly op: "look";
      readonly wanted: boolean;
      readonly inner: number;
      readonly next: number;
    };

type CharacterTest = (codePoint: number) => boolean;
type Assertion = (text: string, at: number) => boolean;

interface Program {
  readonly steps: readonly Step[];
  readonly start: number;
}

/**
 * Turns an ECMAScript pattern (flag `u`) into a program. `RegExp` must have accepted the source before, so only its
 * structure is parsed here. Classes, escapes and properties are left to `RegExp`, one character at a time: that is linear
 * and keeps their exact meaning. Throws UnsupportedPattern and ProgramTooLong.
 */
function parsePattern(source: string): Program {
  const builder = new Builder();
  const end = builder.add({ op: "match" });
  const start = new Parser(source).parse()(builder, end);
  return { steps: builder.steps, start };
}

/** The pattern uses a construct that cannot be matched in bounded time. */
class UnsupportedPattern extends Error {}

class ProgramTooLong extends Error {}

/** `{1000}` becomes a thousand copies, so a short pattern can need a long program; empty copies count as well. */
const MOST_STEPS = 20_000;

/** Appends the steps of one part of a pattern, which continue at `next`, and returns the first of them. */
type Part = (builder: Builder, next: number) => number;

/** Builds a program from its end, so that each part knows the step after it. */
class Builder {
  readonly steps: Step[] = [];
  #copies = 0;

  add(step: Step): number {
    if (this.steps.length >= MOST_STEPS) throw new ProgramTooLong();
    return this.steps.push(step) - 1;
  }

  countCopy(): void {
    this.#copies += 1;
    if (this.#copies > MOST_STEPS) throw new ProgramTooLong();
  }
}

class Parser {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  parse(): Part {
    const branches = [this.#branch()];
    while (this.#take("|")) branches.push(this.#branch());
    return (builder, next) =>
      branches
        .map((branch) => branch(builder, next))
        .reduceRight((second, first) => builder.add({ op: "split", first, second }));
  }

  #branch(): Part {
    const parts: Part[] = [];
    while (this.#at < this.#source.length && !this.#isNext("|") && !this.#isNext(")")) {
      const part = this.#term();
      const times = this.#quantifier();
      parts.push(times === undefined ? part : repeat(part, times.min, times.max));
    }
    return (builder, next) => parts.reduceRight((after, part) => part(builder, after), next);
  }

  #term(): Part {
    if (this.#take("^")) return assertion((_text, at) => at === 0);
    if (this.#take("$")) return assertion((text, at) => at === text.length);
    if (this.#take("\\b")) return assertion(isWordEdge);
    if (this.#take("\\B")) return assertion((text, at) => !isWordEdge(text, at));
    if (this.#take("(")) return this.#group();
    const test = characterTest(this.#atom());
    return (builder, next) => builder.add({ op: "character", test, next });
  }

  #group(): Part {
    const [opening = ""] = /^\?(?:[=!:]|<[^=!>]*>|<[=!]|.)/u.exec(this.#rest()) ?? [];
    this.#at += opening.length;
    if (opening === "?<=" || opening === "?<!") throw new UnsupportedPattern("a lookbehind");
    const isPlain = opening === "" || opening === "?:" || opening.startsWith("?<");
    if (!isPlain && opening !== "?=" && opening !== "?!") {
      throw new UnsupportedPattern("a group with modifiers");
    }
    const part = this.parse();
    this.#at += ")".length;
    if (isPlain) return part;
    return (builder, next) => {
      const inner = part(builder, builder.add({ op: "match" }));
      return builder.add({ op: "look", wanted: opening === "?=", inner, next });
    };
  }

  /** Takes the source of one character. */
  #atom(): string {
    const [atom = ""] = ATOM.exec(this.#rest()) ?? [];
    if (/^\\(?:[1-9]|k)/.test(atom)) throw new UnsupportedPattern("a back reference");
    this.#at += atom.length;
    return atom;
  }

  /** Greedy and lazy quantifiers accept the same texts, so the difference is ignored. */
  #quantifier(): { min: number; max: number } | undefined {
    const found = /^(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/.exec(this.#rest());
    if (found === null) return undefined;
    const [whole, sign, least, comma, most] = found;
    this.#at += whole.length;
    if (sign === "?") return { min: 0, max: 1 };
    const min = sign === undefined ? Number(least) : sign === "+" ? 1 : 0;
    const isOpen = sign !== undefined || (comma !== undefined && most === "");
    return { min, max: isOpen ? Number.POSITIVE_INFINITY : Number(comma ? most : least) };
  }

  #rest(): string {
    return this.#source.slice(this.#at);
  }

  #isNext(text: string): boolean {
    return this.#source.startsWith(text, this.#at);
  }

  #take(text: string): boolean {
    if (!this.#isNext(text)) return false;
    this.#at += text.length;
    return true;
  }
}

function repeat(part: Part, min: number, max: number): Part {
  return (builder, next) => {
    let at = next;
    if (max === Number.POSITIVE_INFINITY) {
      // A loop needs its index before its body exists.
      at = builder.add({ op: "match" });
      builder.steps[at] = { op: "split", first: part(builder, at), second: next };
    } else {
      for (let extra = min; extra < max; extra += 1) {
        at = builder.add({ op: "split", first: part(builder, at), second: next });
      }
    }
    for (let copy = 0; copy < min; copy += 1) {
      builder.countCopy();
      at = part(builder, at);
    }
    return at;
  };
}

function assertion(holds: Assertion): Part {
  return (builder, next) => builder.add({ op: "assert", holds, next });
}

const isWordEdge: Assertion = (text, at) => isWord(text, at - 1) !== isWord(text, at);

function isWord(text: string, at: number): boolean {
  return /^\w$/.test(text.charAt(at));
}

/** A class, an escape (a surrogate pair written as two escapes is one character), or a literal character. */
const ATOM =
  /^(?:\[(?:\\[\s\S]|[^\]\\])*\]|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u\{[\da-fA-F]+\}|\\u[\da-fA-F]{4}|\\x[\da-fA-F]{2}|\\[pP]\{[^}]*\}|\\c[A-Za-z]|\\[\s\S]|[\s\S])/u;

function characterTest(atom: string): CharacterTest {
  const only = atom.codePointAt(0) as number;
  if (atom.length === String.fromCodePoint(only).length && atom !== ".") {
    return (codePoint) => codePoint === only;
  }
  const native = new RegExp(`^${atom}$`, "u");
  // Most characters are ASCII, so their answers are cached: 0 unknown, 1 no, 2 yes.
  const known = new Uint8Array(128);
  return (codePoint) => {
    if (codePoint >= 128) return native.test(String.fromCodePoint(codePoint));
    if (known[codePoint] === 0) {
      known[codePoint] = native.test(String.fromCodePoint(codePoint)) ? 2 : 1;
    }
    return known[codePoint] === 2;
  };
}
