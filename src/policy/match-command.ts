import { matchWithGaps } from "./patterns.ts";
import type { Rule } from "./policy.ts";
import { baseName, type Token } from "./shell/script.ts";
import {
  carriesLiterally,
  isOpaque,
  OTHER_SHELLS,
  READABLE_SHELLS,
  wrapperNamed,
} from "./shell/unwrap.ts";

/**
 * Words of a rule: a literal word, `prefix*`, `*` for one word, `**` for any number of words.
 *
 * A rule that allows is read literally. The first word is the program as it is called: `name`, `./name` and `/bin/name`
 * are three different programs. Wildcards never match options, because options can do anything (`sort -o`, `git -c`,
 * `tar --to-command`): accepted options are written out, in place or in `options`. A word that only the shell can
 * resolve matches nothing.
 */
export function isAllowedBy(
  words: readonly Token[],
  pattern: readonly string[],
  options: readonly string[],
): boolean {
  const [name, ...rest] = words;
  if (name === undefined || words.some(({ known }) => !known)) return false;
  const isWild = pattern.some((piece) => piece.endsWith("*"));
  // `npx **` would allow every program.
  if (isWild && carriesLiterally(words)) return false;
  const listed = ({ text }: Token) =>
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
export function isRestrictedBy(words: readonly Token[], pattern: readonly string[]): boolean {
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

function hasLetters(words: readonly Token[], cluster: string): boolean {
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
