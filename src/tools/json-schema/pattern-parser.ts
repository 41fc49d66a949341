import {
  type Assertion,
  assertion,
  type CharacterTest,
  character,
  either,
  lookahead,
  type Piece,
  repeat,
  sequence,
} from "./pattern-program.ts";

/** What a pattern uses that cannot be matched in linear time, or that we did not think worth it. */
export class UnsupportedPattern extends Error {}

/**
 * Reads an ECMAScript pattern (flag `u`) that the engine has already accepted, so only its structure is looked at here.
 * What one character may be (classes, escapes, properties) is left to the engine, asked about one character at a time:
 * there it has nothing to go back over, and the meaning is exactly its own.
 */
export class PatternParser {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  parse(): Piece {
    return this.#alternatives();
  }

  #alternatives(): Piece {
    const branches = [this.#branch()];
    while (this.#take("|")) branches.push(this.#branch());
    return branches.length === 1 ? (branches[0] as Piece) : either(branches);
  }

  #branch(): Piece {
    const pieces: Piece[] = [];
    while (this.#at < this.#source.length && !this.#isNext("|") && !this.#isNext(")")) {
      const piece = this.#term();
      const times = this.#quantifier();
      pieces.push(times === undefined ? piece : repeat(piece, times.min, times.max));
    }
    return sequence(pieces);
  }

  #term(): Piece {
    if (this.#take("^")) return assertion(isStart);
    if (this.#take("$")) return assertion(isEnd);
    if (this.#take("\\b")) return assertion(isWordEdge);
    if (this.#take("\\B")) return assertion((text, at) => !isWordEdge(text, at));
    if (this.#take("(")) return this.#group();
    return character(characterTest(this.#atom()));
  }

  #group(): Piece {
    const [opening = ""] = /^\?(?:[=!:]|<[^=!>]*>|<[=!]|.)/u.exec(this.#rest()) ?? [];
    this.#at += opening.length;
    if (opening === "?<=" || opening === "?<!") throw new UnsupportedPattern("a lookbehind");
    const isPlain = opening === "" || opening === "?:" || opening.startsWith("?<");
    if (!isPlain && opening !== "?=" && opening !== "?!") {
      throw new UnsupportedPattern("a group with modifiers");
    }
    const inner = this.#alternatives();
    this.#at += ")".length;
    return isPlain ? inner : lookahead(inner, opening === "?=");
  }

  /** The source of what stands for one character. */
  #atom(): string {
    const [atom = ""] = ATOM.exec(this.#rest()) ?? [];
    if (/^\\(?:[1-9]|k)/.test(atom)) throw new UnsupportedPattern("a back reference");
    this.#at += atom.length;
    return atom;
  }

  #quantifier(): { min: number; max: number } | undefined {
    const found = /^(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})\??/.exec(this.#rest());
    if (found === null) return undefined;
    this.#at += found[0].length;
    const [sign, least, comma, most] = found;
    if (sign.startsWith("*")) return { min: 0, max: Number.POSITIVE_INFINITY };
    if (sign.startsWith("+")) return { min: 1, max: Number.POSITIVE_INFINITY };
    if (sign.startsWith("?")) return { min: 0, max: 1 };
    const min = Number(least);
    if (comma === undefined) return { min, max: min };
    return { min, max: most === "" ? Number.POSITIVE_INFINITY : Number(most) };
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

/** A class, an escape (a surrogate pair written as two escapes is one character), or one character as it is. */
const ATOM =
  /^(?:\[(?:\\[\s\S]|[^\]\\])*\]|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u\{[\da-fA-F]+\}|\\u[\da-fA-F]{4}|\\x[\da-fA-F]{2}|\\[pP]\{[^}]*\}|\\c[A-Za-z]|\\[\s\S]|[\s\S])/u;

function characterTest(atom: string): CharacterTest {
  const only = atom.codePointAt(0) as number;
  if (atom.length === String.fromCodePoint(only).length && atom !== ".") {
    return (codePoint) => codePoint === only;
  }
  const native = new RegExp(`^${atom}$`, "u");
  // Most characters are ASCII; what the engine said about one is kept: 0 not asked, 1 no, 2 yes.
  const known = new Uint8Array(128);
  return (codePoint) => {
    if (codePoint >= 128) return native.test(String.fromCodePoint(codePoint));
    if (known[codePoint] === 0) {
      known[codePoint] = native.test(String.fromCodePoint(codePoint)) ? 2 : 1;
    }
    return known[codePoint] === 2;
  };
}

const isStart: Assertion = (_text, at) => at === 0;
const isEnd: Assertion = (text, at) => at === text.length;
const isWordEdge: Assertion = (text, at) => isWord(text, at - 1) !== isWord(text, at);

function isWord(text: string, at: number): boolean {
  return /^\w$/.test(text.charAt(at));
}
