// Finds regular expressions that can take exponential time: a repetition in a repetition that can divide the same text in
// several ways, and alternatives under a repetition that can begin with the same character.

import { parseSync } from "vite";
import { read } from "./source-files.ts";

interface Term {
  /** What one character may be; undefined for a group and for what matches no character. */
  readonly set?: CharacterSet;
  readonly group?: readonly Branch[];
  readonly min: number;
  readonly max: number;
}

type Branch = readonly Term[];

/** One entry for each sample. */
type CharacterSet = readonly boolean[];

/** All of ASCII, and some of each kind beyond. */
const SAMPLES = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
  ..."éßЖ漢\u00a0\u2028\u200b\ufeff😀",
];

/** Why a pattern is dangerous; empty when it is not. */
export function dangersOf(source: string, flags = ""): string[] {
  return dangersIn(new Reader(source, flags.replaceAll(/[gyd]/g, "")).branches());
}

function dangersIn(branches: readonly Branch[]): string[] {
  return branches.flat().flatMap((term) => {
    if (term.group === undefined) return [];
    const inside = dangersIn(term.group);
    return isLong(term) ? [...inside, ...repeated(term.group)] : inside;
  });
}

function repeated(branches: readonly Branch[]): string[] {
  const dangers: string[] = [];
  if (branches.some(isEmpty)) dangers.push("a repetition of something that may be empty");
  if (branches.some((branch) => isNested(branch, branches)))
    dangers.push("a repetition in a repetition");
  const firsts = branches.map(firstOf);
  const overlap = firsts.some((set, index) => firsts.slice(0, index).some((one) => meet(set, one)));
  if (overlap) dangers.push("alternatives that begin alike in a repetition");
  return dangers;
}

/**
 * Harmless only when each round has a character that nothing else in it can match, and when what is long in it cannot be
 * continued by another branch: then the rounds can be told apart in one way.
 */
function isNested(branch: Branch, branches: readonly Branch[]): boolean {
  if (!branch.some(hasLong)) return false;
  const marks = branch.some((term, index) => {
    const others = allOf(branch.filter((_, at) => at !== index));
    return term.min > 0 && term.max === 1 && term.set !== undefined && !meet(others, term.set);
  });
  const long = longIn(branch);
  const others = branches.filter((other) => other !== branch);
  return !marks || others.some((other) => meet(long, firstOf(other)));
}

function longIn(branch: Branch): CharacterSet {
  return union(
    branch.map((term) => {
      if (isLong(term)) return allOf([term]);
      return union((term.group ?? []).map(longIn));
    }),
  );
}

function hasLong(term: Term): boolean {
  return isLong(term) || term.group?.some((inner) => inner.some(hasLong)) === true;
}

function isLong({ max }: Term): boolean {
  return max > 10;
}

function isEmpty(branch: Branch): boolean {
  return branch.every(
    ({ min, set, group }) =>
      min === 0 || (set === undefined && (group === undefined || group.some(isEmpty))),
  );
}

function firstOf(branch: Branch): CharacterSet {
  const sets: CharacterSet[] = [];
  for (const { set, group, min } of branch) {
    if (set !== undefined) sets.push(set);
    if (group !== undefined) sets.push(union(group.map(firstOf)));
    if (min > 0 && (set !== undefined || group?.some(isEmpty) === false)) break;
  }
  return union(sets);
}

function allOf(branch: Branch): CharacterSet {
  return union(branch.map(({ set, group }) => set ?? union((group ?? []).map(allOf))));
}

function union(sets: readonly CharacterSet[]): CharacterSet {
  return SAMPLES.map((_, index) => sets.some((set) => set[index]));
}

function meet(one: CharacterSet, other: CharacterSet): boolean {
  return one.some((has, index) => has && other[index]);
}

class Reader {
  readonly #source: string;
  readonly #flags: string;
  #at = 0;

  constructor(source: string, flags: string) {
    this.#source = source;
    this.#flags = flags;
  }

  branches(): Branch[] {
    const found: Term[][] = [[]];
    while (this.#at < this.#source.length && this.#source[this.#at] !== ")") {
      if (this.#take("|")) found.push([]);
      else found.at(-1)?.push(this.#term());
    }
    return found;
  }

  #term(): Term {
    const part = this.#part();
    return { ...part, ...this.#times() };
  }

  #part(): Pick<Term, "set" | "group"> {
    if (this.#take("^") || this.#take("$") || this.#take("\\b") || this.#take("\\B")) return {};
    if (this.#source[this.#at] !== "(") return { set: this.#set(this.#atom()) };
    const opening = /^\((?:\?(?:[:=!]|<[=!]|<\w+>|[a-z-]+:))?/.exec(
      this.#source.slice(this.#at),
    )?.[0];
    this.#at += opening?.length ?? 1;
    const group = this.branches();
    this.#at += 1;
    // What looks ahead or back takes no characters, but what is in it is looked at all the same.
    return { group };
  }

  #atom(): string {
    const rest = this.#source.slice(this.#at);
    const atom =
      /^(?:\[(?:\\[\s\S]|[^\]\\])*\]|\\u\{[^}]*\}|\\u[\da-fA-F]{4}|\\x[\da-fA-F]{2}|\\[pP]\{[^}]*\}|\\c[A-Za-z]|\\k<\w+>|\\[\s\S]|[\s\S])/u.exec(
        rest,
      )?.[0] ?? "";
    this.#at += atom.length;
    return atom;
  }

  #set(atom: string): CharacterSet {
    // A reference to a group can be anything.
    if (/^\\(?:[1-9]|k<)/.test(atom)) return SAMPLES.map(() => true);
    const one = new RegExp(`^(?:${atom})$`, this.#flags);
    return SAMPLES.map((sample) => one.test(sample));
  }

  #times(): Pick<Term, "min" | "max"> {
    const found = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(this.#source.slice(this.#at));
    if (found === null) return { min: 1, max: 1 };
    const [text, least = "", comma = "", most = ""] = found;
    this.#at += text.length;
    const many = Number.POSITIVE_INFINITY;
    if (text.startsWith("*")) return { min: 0, max: many };
    if (text.startsWith("+")) return { min: 1, max: many };
    if (text.startsWith("?")) return { min: 0, max: 1 };
    return {
      min: Number(least),
      max: comma === "" ? Number(least) : most === "" ? many : Number(most),
    };
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }
}

/** What is looked at of a node. */
interface Syntax {
  readonly type?: string;
  readonly regex?: Found;
  readonly callee?: { readonly name?: string };
  readonly arguments?: readonly { readonly value?: unknown }[];
}

interface Found {
  readonly pattern: string;
  readonly flags: string;
}

/** The regular expressions of a file: literals, and texts that are given to RegExp. */
export function regexesIn(file: string): Found[] {
  const found: Found[] = [];
  const walk = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    const { type, regex, callee, arguments: given } = node as Syntax;
    if (type === "Literal" && regex) found.push(regex);
    const [pattern, flags] = callee?.name === "RegExp" ? (given ?? []) : [];
    if (typeof pattern?.value === "string") {
      found.push({ pattern: pattern.value, flags: String(flags?.value ?? "") });
    }
    Object.values(node).forEach(walk);
  };
  walk(parseSync(file, read(file)).program);
  return found;
}
