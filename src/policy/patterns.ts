import { canonicalJson } from "../util/canonical-json.ts";
import { shown } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import { isPrivateAddress } from "../util/private-address.ts";
import type { Rule } from "./policy.ts";
import { baseName, type ShellWord } from "./shell/script.ts";
import {
  carriesLiterally,
  isOpaque,
  OTHER_SHELLS,
  READABLE_SHELLS,
  wrapperNamed,
} from "./shell/unwrap.ts";

/**
 * Splits a path into names, the root first: `/a/b` is `["", "a", "b"]`, `C:\a` is `["C:", "a"]`. Undefined for a path
 * that is not absolute or not fully resolved (`.`, `..`, empty names, a null character): such a path is never compared.
 */
export function segmentsOf(path: string): readonly string[] | undefined {
  if (path.includes("\0")) return undefined;
  const isWindows = /^[A-Za-z]:[\\/]/.test(path);
  if (!isWindows && !path.startsWith("/")) return undefined;
  const segments = path.split(isWindows ? /[\\/]/ : "/");
  if (segments.at(-1) === "") segments.pop();
  if (segments.length === 0) return undefined;
  const isPlain = (name: string) => name !== "" && name !== "." && name !== "..";
  return segments.slice(1).every(isPlain) ? segments : undefined;
}

/** True for the folder itself and everything below it, by whole names: `/work` does not contain `/workshop`. */
export function isWithin(path: readonly string[], folder: readonly string[]): boolean {
  return folder.length <= path.length && folder.every((name, index) => name === path[index]);
}

/**
 * Matches a path against a pattern by whole names: `*` inside a name matches any characters of that name, a name `**`
 * matches any number of names, including none. So `/work/**` also matches `/work`.
 */
export function matchPath(path: readonly string[], pattern: readonly string[]): boolean {
  return matchWithGaps(path, pattern, {
    isGap: (piece) => piece === "**",
    fits: (piece, name) => matchText(name, piece),
  });
}

/** The names of a pattern before its first wildcard, used as an index key. */
export function literalStart(pattern: readonly string[]): readonly string[] {
  const wild = pattern.findIndex((name) => name.includes("*"));
  return wild < 0 ? pattern : pattern.slice(0, wild);
}

/** The problem with a path pattern, as the rest of a sentence. */
export function pathPatternProblem(pattern: string): string | undefined {
  if (pattern.length > 4096) return "is longer than 4096 characters";
  const segments = segmentsOf(pattern);
  if (segments === undefined) {
    return 'must be an absolute path such as "/work/**", without ".", ".." and empty names';
  }
  const odd = segments.find((name) => name.includes("**") && name !== "**");
  return odd === undefined ? undefined : 'may use "**" only as a whole name';
}

/** A host in its normal form, and a port. */
export interface HostIdentity {
  /** Lower case, punycode, canonical addresses, without brackets and without a trailing dot. */
  readonly host: string;
  readonly port: number;
}

interface HostPattern extends HostIdentity {
  /** True for `*.example.com`, which matches every name below example.com but not example.com itself. */
  readonly below: boolean;
}

const HTTPS_PORT = 443;

/** Parses `example.com`, `*.example.com`, `[::1]:8080`, `bücher.example:444`; undefined for anything else. */
export function parseHostPattern(pattern: string): HostPattern | undefined {
  const below = pattern.startsWith("*.");
  const rest = below ? pattern.slice(2) : pattern;
  if (rest === "" || /[\s/?#@\\*%]/.test(rest)) return undefined;
  const url = parseUrl(`https://${rest}/`);
  if (url === undefined || url.username !== "" || url.password !== "") return undefined;
  const host = plainHost(url.hostname);
  // `*.com` would open half the internet, and addresses have no subdomains.
  if (below && (!host.includes(".") || isAddress(host))) return undefined;
  return { below, host, port: url.port === "" ? HTTPS_PORT : Number(url.port) };
}

export function matchHost({ host, port }: HostIdentity, pattern: HostPattern): boolean {
  if (port !== pattern.port) return false;
  return pattern.below ? host.endsWith(`.${pattern.host}`) : host === pattern.host;
}

/** WHATWG parsing, as in fetch: octal, hexadecimal and short addresses get their canonical form. */
function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}

/** Removes the brackets of an address and the trailing root dot, which does not change the host. */
function plainHost(hostname: string): string {
  const bare = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
  return bare.endsWith(".") ? bare.slice(0, -1) : bare;
}

function isAddress(host: string): boolean {
  return host.includes(":") || /^\d+\.\d+\.\d+\.\d+$/.test(host);
}

const PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

/** Names that resolve to this machine, this network or the cloud's metadata services. */
// biome-ignore format: a list
const INTERNAL_NAMES = [
  "localhost", "localdomain", "local", "internal", "intranet", "private", "corp", "home", "lan", "home.arpa", "test",
  "invalid", "example", "onion",
];

export type ReadUrl =
  | { readonly ok: true; readonly identity: HostIdentity }
  /** Why it must never be fetched, as the rest of a sentence. */
  | { readonly ok: false; readonly why: string };

/** Parses an address as fetch does and rejects what must never be fetched, as far as the text shows. */
export function readUrl(text: string): ReadUrl {
  const url = parseUrl(text);
  if (url === undefined) return refuse("it is not a complete address such as https://example.com/");
  const port = PORTS[url.protocol];
  if (port === undefined) return refuse("only http and https addresses can be fetched");
  if (url.username !== "" || url.password !== "") {
    return refuse("it holds a user name or password, which also hides the real host");
  }
  const host = plainHost(url.hostname);
  if (host === "" || host.endsWith(".")) return refuse("it names no host");
  if (isAddress(host)) {
    if (isPrivateAddress(host)) {
      return refuse(
        "the host is an address of this machine, a private network or a cloud's own service",
      );
    }
  } else if (isInternalName(host)) {
    return refuse("the host is a name of this machine or of an internal network");
  }
  return { ok: true, identity: { host, port: url.port === "" ? port : Number(url.port) } };
}

function isInternalName(host: string): boolean {
  // A name without a dot is resolved in the local network.
  return !host.includes(".") || INTERNAL_NAMES.some((name) => host.endsWith(`.${name}`));
}

function refuse(why: string): ReadUrl {
  return { ok: false, why };
}

/**
 * Matches a list against a pattern with gaps in at most pattern × list steps: after a mismatch only the last gap is
 * widened, so nothing backtracks twice. Regular expressions of users are never compiled: one of 29 characters can block
 * a process for 19 seconds.
 */
export function matchWithGaps<Item, Piece>(
  items: ArrayLike<Item>,
  pattern: ArrayLike<Piece>,
  rules: {
    readonly isGap: (piece: Piece) => boolean;
    readonly fits: (piece: Piece, item: Item) => boolean;
    /** Whether a gap may match this item; by default any. */
    readonly maySkip?: (item: Item) => boolean;
  },
): boolean {
  let at = 0;
  let next = 0;
  let gapAt = -1;
  let gapEnd = 0;
  while (at < items.length) {
    const piece = pattern[next] as Piece;
    if (next < pattern.length && rules.isGap(piece)) {
      gapAt = next;
      gapEnd = at;
      next += 1;
    } else if (next < pattern.length && rules.fits(piece, items[at] as Item)) {
      at += 1;
      next += 1;
    } else if (gapAt >= 0 && (rules.maySkip?.(items[gapEnd] as Item) ?? true)) {
      gapEnd += 1;
      at = gapEnd;
      next = gapAt + 1;
    } else {
      return false;
    }
  }
  while (next < pattern.length && rules.isGap(pattern[next] as Piece)) next += 1;
  return next === pattern.length;
}

/** Matches a text against a pattern in which `*` matches any run of characters. */
export function matchText(text: string, pattern: string): boolean {
  return matchWithGaps(text, pattern, {
    isGap: (piece) => piece === "*",
    fits: (piece, character) => piece === character,
  });
}

/**
 * Words of a rule: a literal word, `prefix*`, `*` for one word, `**` for any number of words.
 *
 * A rule that allows is read literally. The first word is the program as it is called: `name`, `./name` and `/bin/name`
 * are three different programs. Wildcards never match options, because options can do anything (`sort -o`, `git -c`,
 * `tar --to-command`): accepted options are written out, in place or in `options`. A word that only the shell can
 * resolve matches nothing.
 */
export function isAllowedBy(
  words: readonly ShellWord[],
  pattern: readonly string[],
  options: readonly string[],
): boolean {
  const [name, ...rest] = words;
  if (name === undefined || words.some(({ known }) => !known)) return false;
  const isWild = pattern.some((piece) => piece.endsWith("*"));
  // `npx **` would allow every program.
  if (isWild && carriesLiterally(words)) return false;
  const listed = ({ text }: ShellWord) =>
    isOption(text) && options.some((one) => fitsLiterally(one, text));
  return matchWithGaps([name, ...rest.filter((word) => !listed(word))], pattern, {
    isGap: (piece) => piece === "**",
    fits: (piece, { text }) => fitsLiterally(piece, text),
    maySkip: ({ text }) => !isOption(text),
  });
}

/**
 * A rule that restricts is read broadly: the program by its base name in any folder, the other words anywhere after it
 * in the same order, `-f` also inside `-rf`. Words that only the shell can resolve are not matched: a command with them
 * is never allowed.
 */
export function isRestrictedBy(words: readonly ShellWord[], pattern: readonly string[]): boolean {
  const [name, ...rest] = words;
  const [wantedName = "**", ...wanted] = pattern;
  if (name === undefined || !fits(baseName(wantedName), baseName(name.text))) return false;
  if (!wanted.filter(isCluster).every((cluster) => hasLetters(rest, cluster))) return false;
  const others = wanted.filter((piece) => piece !== "**" && !isCluster(piece));
  let next = 0;
  for (const { text } of rest) {
    const piece = others[next];
    if (piece !== undefined && fits(piece, text)) next += 1;
  }
  return next === others.length;
}

function fits(piece: string, text: string): boolean {
  return piece.endsWith("*") ? text.startsWith(piece.replace(/\*\*?$/, "")) : piece === text;
}

/** A prefix such as `/work/` means a folder, and `..` would leave it. */
function fitsLiterally(piece: string, text: string): boolean {
  if (isOption(text) && !isOption(piece)) return false;
  if (!fits(piece, text)) return false;
  return (
    piece === "*" ||
    !piece.endsWith("*") ||
    !/(^|[/=])\.\.(\/|$)/.test(text.slice(piece.length - 1))
  );
}

function isOption(text: string): boolean {
  return text.startsWith("-") && text !== "-";
}

/** Letters after one dash, few enough to be switches and not a word such as `-name`. */
function isCluster(piece: string): boolean {
  return /^-[A-Za-z]{1,3}$/.test(piece);
}

function hasLetters(words: readonly ShellWord[], cluster: string): boolean {
  const given = words.filter(({ text }) => /^-[A-Za-z0-9]+$/.test(text));
  return [...cluster.slice(1)].every((letter) => given.some(({ text }) => text.includes(letter)));
}

const MOST_WORDS = 100;
const LONGEST_WORD = 1_000;

/** The problem with the command of a rule, as the rest of a sentence. */
export function commandProblem(rule: Rule): string | undefined {
  const { command, options, effect } = rule;
  if (options !== undefined && (command === undefined || effect !== "allow")) {
    return "has options, which belong to a command that is allowed";
  }
  if (command === undefined) return undefined;
  if (!isWords(command) || command.length === 0) return "has a command that is not a list of words";
  if (options !== undefined && !isWords(options)) return "has options that are not a list of words";
  const odd = [...command, ...(options ?? [])].find((word) =>
    /\*/.test(word.replace(/^\*\*$|\*$/, "")),
  );
  if (odd !== undefined) return 'may use "*" only at the end of a word, and "**" only as a word';
  return effect === "allow" ? allowanceProblem(command, options ?? []) : undefined;
}

/** A rule that allows must name a program that runs, and options by name. */
function allowanceProblem(
  [name = "", ...words]: readonly string[],
  options: readonly string[],
): string | undefined {
  if (name.includes("*")) return "must name the program it allows, without a wildcard";
  const program = baseName(name).toLowerCase();
  const isCarrier =
    isOpaque(program) ||
    READABLE_SHELLS.has(program) ||
    OTHER_SHELLS.has(program) ||
    (wrapperNamed(program) !== undefined && words.length > 0);
  if (isCarrier)
    return `allows "${program}", which runs other programs; name the program that runs instead`;
  if (name.includes("/") && !name.startsWith("/") && !name.startsWith("./")) {
    return 'must name a program as "name", "./name" or "/absolute/name"';
  }
  const wide = [...words, ...options].find(
    (word) => /^-.*\*$/.test(word) && !/^--[\w-]+=\*$/.test(word),
  );
  if (wide !== undefined)
    return 'may use a wildcard in an option only for its value, as in "--format=*"';
  const operand = options.find((word) => !word.startsWith("-"));
  return operand === undefined ? undefined : "has options that do not start with a dash";
}

function isWords(words: unknown): words is readonly string[] {
  return (
    Array.isArray(words) &&
    words.length <= MOST_WORDS &&
    words.every((word) => typeof word === "string" && word !== "" && word.length <= LONGEST_WORD)
  );
}

type Step = string | number;

/** One place in the input and its conditions, all of which must hold. */
export interface InputTest {
  /** Such as `$.items[0].price` or `$["a key"]`. */
  readonly at: string;
  readonly equals?: JsonValue;
  readonly oneOf?: readonly JsonValue[];
  /** The text there starts with this. */
  readonly prefix?: string;
  readonly min?: number;
  readonly max?: number;
}

const TEST_KEYS = ["at", "equals", "oneOf", "prefix", "min", "max"];

/** The problem of an input test, as the end of a sentence about its rule; undefined when there is none. */
export function testProblem(test: InputTest): string | undefined {
  if (typeof test !== "object" || test === null || Array.isArray(test))
    return "has an input test that is no object";
  const extra = Object.keys(test).find((key) => !TEST_KEYS.includes(key));
  if (extra !== undefined) return `has an input test with the unknown key ${shown(extra)}`;
  if (typeof test.at !== "string" || parseSteps(test.at) === undefined) {
    return 'has an input test whose "at" is not like $.items[0]["a key"]';
  }
  const given = Object.keys(test).filter((key) => key !== "at");
  if (given.length === 0) return "has an input test that asks for nothing";
  if (test.equals !== undefined && test.oneOf !== undefined)
    return "has an input test with equals and oneOf";
  if (test.oneOf !== undefined && !(Array.isArray(test.oneOf) && test.oneOf.length > 0)) {
    return "has an input test whose oneOf is not a filled list";
  }
  if (test.prefix !== undefined && (typeof test.prefix !== "string" || test.prefix === "")) {
    return "has an input test whose prefix is not a filled text";
  }
  const isBound = (bound: unknown) => bound === undefined || typeof bound === "number";
  return isBound(test.min) && isBound(test.max)
    ? undefined
    : "has an input test whose min or max is no number";
}

export interface CompiledInputTest {
  readonly steps: readonly Step[];
  /** The path in its normal form, for the index. */
  readonly at: string;
  /** Canonical texts, one of which must be equal; undefined when the test does not compare for equality. */
  readonly equal: ReadonlySet<string> | undefined;
  readonly test: InputTest;
}

export function compileInputTest(test: InputTest): CompiledInputTest {
  const steps = parseSteps(test.at);
  const wanted = test.equals === undefined ? test.oneOf : [test.equals];
  return {
    steps: steps ?? [],
    at: JSON.stringify(steps),
    equal: wanted === undefined ? undefined : new Set(wanted.map(canonicalJson)),
    test,
  };
}

/** Reads own properties only, so that a prototype cannot provide input. Undefined when the place does not exist. */
export function valueAt(input: JsonValue, steps: readonly Step[]): JsonValue | undefined {
  let value: JsonValue | undefined = input;
  for (const step of steps) {
    if (typeof value !== "object" || value === null) return undefined;
    if (Array.isArray(value) !== (typeof step === "number")) return undefined;
    if (!Object.hasOwn(value, step)) return undefined;
    value = (value as Record<Step, JsonValue>)[step];
  }
  return value;
}

/** A place that does not exist satisfies no test. */
export function holdsForInput(compiled: CompiledInputTest, input: JsonValue): boolean {
  const { equal, test } = compiled;
  const value = valueAt(input, compiled.steps);
  if (value === undefined) return false;
  if (equal !== undefined && !equal.has(canonicalJson(value))) return false;
  if (test.prefix !== undefined && !startsWith(value, test.prefix)) return false;
  if (test.min !== undefined && !(typeof value === "number" && value >= test.min)) return false;
  return !(test.max !== undefined && !(typeof value === "number" && value <= test.max));
}

function startsWith(value: JsonValue, prefix: string): boolean {
  return typeof value === "string" && value.startsWith(prefix);
}

/** Parses `$.a[0]["b c"]` into its steps; undefined for any other syntax. */
export function parseSteps(at: string): readonly Step[] | undefined {
  if (at.length > 1024 || !at.startsWith("$")) return undefined;
  const steps: Step[] = [];
  // One anchored step at a time, without nested repetition: linear in the length of the path.
  const step = /\.([A-Za-z_$][\w$]*)|\[(0|[1-9]\d{0,8})\]|\[("(?:[^"\\]|\\.)*")\]/y;
  step.lastIndex = 1;
  while (step.lastIndex < at.length) {
    const [, name, index, quoted] = step.exec(at) ?? [];
    if (name !== undefined) steps.push(name);
    else if (index !== undefined) steps.push(Number(index));
    else if (quoted !== undefined) {
      const key = parseKey(quoted);
      if (key === undefined) return undefined;
      steps.push(key);
    } else return undefined;
  }
  return steps;
}

function parseKey(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return undefined;
  }
}

/** `allow` and `review` need no person, so such a rule has to write out what it allows. */
export function isAllowing({ effect }: { readonly effect: string }): boolean {
  return effect === "allow" || effect === "review";
}

export function isRuleEffect(effect: string): boolean {
  return ["allow", "review", "ask", "deny"].includes(effect);
}
