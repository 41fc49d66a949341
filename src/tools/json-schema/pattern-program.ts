/** One step of a program. `next`, `first`, `second` and `inner` are indexes of other steps. */
export type Step =
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

export interface Program {
  readonly steps: readonly Step[];
  readonly start: number;
}

/**
 * Turns an ECMAScript pattern (flag `u`) into a program. `RegExp` must have accepted the source before, so only its
 * structure is parsed here. Classes, escapes and properties are left to `RegExp`, one character at a time: that is linear
 * and keeps their exact meaning. Throws UnsupportedPattern and ProgramTooLong.
 */
export function parsePattern(source: string): Program {
  const builder = new Builder();
  const end = builder.add({ op: "match" });
  const start = new Parser(source).parse()(builder, end);
  return { steps: builder.steps, start };
}

/** The pattern uses a construct that cannot be matched in bounded time. */
export class UnsupportedPattern extends Error {}

export class ProgramTooLong extends Error {}

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
