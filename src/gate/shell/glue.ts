import type { Token } from "./token.ts";

type Words = readonly string[];

/**
 * Words of the shell that join commands and do nothing by themselves: they need no rule and allow nothing. Each is known
 * here only in forms that evaluate nothing; others do: `test -v 'a[$(id)]'` and `wait -p 'a[$(id)]'` run a program.
 */
const FORMS: Readonly<Record<string, (rest: Words) => boolean>> = {
  ":": (rest) => rest.every(isSafe),
  true: (rest) => rest.every(isSafe),
  false: (rest) => rest.every(isSafe),
  break: isNumber,
  continue: isNumber,
  exit: isNumber,
  return: isNumber,
  pwd: (rest) => rest.length === 0,
  wait: (rest) => rest.length === 0,
  set: isStrictness,
  command: ([option = "", ...names]) => /^-p?[vV]$/.test(option) && names.every(isSafe),
  test: isTest,
  "[": (rest) => rest.at(-1) === "]" && isTest(rest.slice(0, -1)),
  // Not glue in any form, but `-v` evaluates the name behind it.
  printf: () => false,
};

/** `never` for a word of the shell used in a way that no rule may allow. */
export type Glue = "glue" | "other" | "never";

export function glueOf(words: readonly Token[]): Glue {
  const [name, ...rest] = words.map(({ text }) => text);
  const form = name !== undefined && Object.hasOwn(FORMS, name) ? FORMS[name] : undefined;
  if (form === undefined) return "other";
  if (words.every(({ known }) => known) && form(rest)) return "glue";
  return name === "printf" && !rest.some((word) => word.startsWith("-v")) ? "other" : "never";
}

/** Nothing that any shell evaluates, whatever the word in front does with it. */
function isSafe(word: string): boolean {
  return /^[\w.:/@+,=% -]*$/.test(word);
}

function isNumber(rest: Words): boolean {
  return rest.length === 0 || (rest.length === 1 && /^\d{1,3}$/.test(rest[0] ?? ""));
}

/** `set -e`, `set -euo pipefail`. Not `-x`: the shell evaluates PS4 for each line that it shows. */
function isStrictness(rest: Words): boolean {
  return (
    rest.length > 0 &&
    rest.every((word, index) =>
      word === "pipefail"
        ? /^[-+][eu]*o$/.test(rest[index - 1] ?? "")
        : /^[-+][eu]+$/.test(word) || (/^[-+][eu]*o$/.test(word) && rest[index + 1] === "pipefail"),
    )
  );
}

/** One question about one file or text. Comparing numbers is left out: some shells evaluate both sides. */
function isTest(rest: Words): boolean {
  const [first = "", second = "", third] = rest[0] === "!" ? rest.slice(1) : rest;
  const length = rest[0] === "!" ? rest.length - 1 : rest.length;
  if (length === 2) return /^-[bcdefghknprsuwxzLS]$/.test(first) && isSafe(second);
  return length === 3 && /^!?=$/.test(second) && isSafe(first) && isSafe(third ?? "");
}
