import type { Rule } from "./policy.ts";
import { isOpaque } from "./shell/carriers.ts";
import { baseName } from "./shell/token.ts";
import { OTHER_SHELLS, READABLE_SHELLS, wrapperNamed } from "./shell/wrappers.ts";

const MOST_WORDS = 100;
const LONGEST_WORD = 1_000;

/** What is wrong with the command of a rule, as the rest of a sentence. */
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

/** An allowance must say what it allows: a program that runs, and options by name. */
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
