import {
  type DoubleQuotedChild,
  forEachChild,
  type HereDoc,
  type Pipeline,
  parse,
  type SyntaxNode,
  type Word,
  type WordPart,
} from "unbash";
import { shownError } from "../answers.ts";
import { CommandReader } from "./read-command.ts";
import { inspectionProblem, type ShellScript, type Token, UNKNOWN } from "./script.ts";

/** The limit for scripts inside scripts (`sh -c 'sh -c …'`). */
const MOST_SHELLS = 8;

/** The limit for nested nodes; a nested substitution takes about five. */
const DEEPEST = 160;

/**
 * Parses a command with a real parser (unbash): lists, pipes, groups, loops, functions, substitutions, here documents,
 * and the texts of `sh -c`. Nothing is run or expanded. Anything that cannot be resolved completely becomes a reason
 * why no rule may allow the command; the rest is still searched for dangers.
 */
export function readShell(command: string): ShellScript {
  const reader = new CommandReader();
  readInto(reader, command, 0);
  return reader.result();
}

function readInto(reader: CommandReader, command: string, shells: number): void {
  const problem =
    shells > MOST_SHELLS ? "it has too many shells inside each other" : inspectionProblem(command);
  if (problem !== undefined) {
    reader.block(problem);
    return;
  }
  try {
    // Shells join continued lines at different places: dash reads `2\⏎>&1` as a redirection, others as the word 2.
    if (command.includes("\\\n")) reader.block("it continues a line with a backslash");
    visit(parse(command), {
      reader,
      depth: 0,
      nested: (text) => readInto(reader, text, shells + 1),
    });
  } catch (error) {
    // The parser should accept any text. If it ever throws, treat the command like one that is too long.
    reader.block(`it cannot be read (${shownError(error)})`);
  }
}

interface Walk {
  readonly reader: CommandReader;
  readonly depth: number;
  readonly nested: (text: string) => void;
}

function visit(node: SyntaxNode, walk: Walk): void {
  const { reader, nested, depth } = walk;
  const deeper = { ...walk, depth: depth + 1 };
  if (depth > DEEPEST) {
    reader.block("it is nested too deeply");
    return;
  }
  const down = () => forEachChild(node, (child) => visit(child, deeper));
  for (const why of problemsOf(node)) reader.block(why);
  switch (node.type) {
    case "Command":
      reader.command(node, down, nested);
      break;
    case "Pipeline":
      reader.pipeline(node, (child) => visit(child, deeper));
      break;
    case "Redirected":
      reader.redirected(node.redirects, down);
      break;
    case "Function":
      reader.function(node, down);
      break;
    // Changes in a child process, such as the folder, end with it.
    case "Subshell":
    case "CommandExpansion":
    case "ProcessSubstitution":
    case "ArithmeticCommandExpansion":
      reader.apart(down);
      break;
    default:
      if (node.type === "Redirect") reader.redirect(node);
      if (node.type === "Assignment") reader.assignment(node);
      down();
  }
}

/**
 * The constructs of an understood script; any other makes it not understood. Expansions are excluded: arithmetic,
 * `${!x}`, `${x@P}` and similar evaluate values again, and what they run is not in the text.
 */
// biome-ignore format: a list
const UNDERSTOOD: ReadonlySet<SyntaxNode["type"]> = new Set<SyntaxNode["type"]>([
  "Script", "Statement", "CompoundList", "AndOr", "Pipeline", "Time", "Negation", "Command", "Redirected", "Subshell",
  "BraceGroup", "If", "Elif", "While", "Case", "CaseItem", "Assignment", "Redirect", "FileDescriptor", "HereString",
  "HereDoc", "HereDocDelimiter", "HereDocBody", "Word", "Literal", "SingleQuoted", "DoubleQuoted", "Glob",
]);

/** Why a script with this construct is not understood, each as the rest of a sentence. */
function problemsOf(node: SyntaxNode): readonly string[] {
  if (!UNDERSTOOD.has(node.type)) return [`it uses ${nameOf(node.type)}`];
  switch (node.type) {
    case "Script":
      return (node.errors ?? []).map(({ message }) => `it does not parse (${message})`);
    case "Pipeline":
      return isPlainPipeline(node)
        ? []
        : ['it uses "time" or "!" in a way that shells read differently'];
    case "HereDoc":
      return isPlainText(node) ? [] : ["a here document in it is more than plain text"];
    case "Literal":
      return hasOpenSign(node.text) ? ["it uses an expansion"] : [];
    case "Word":
      return node.parts === undefined && hasOpenSign(node.text) ? ["it uses an expansion"] : [];
    default:
      return [];
  }
}

const NAMES: Readonly<Partial<Record<SyntaxNode["type"], string>>> = {
  Function: "a function, which changes what its words mean",
  For: "a loop over words",
  Select: "a menu",
  Coproc: "a coprocess",
  FileDescriptorVariable: "a variable for a file descriptor",
  ArrayValue: "an array",
};

function nameOf(type: SyntaxNode["type"]): string {
  if (type.startsWith("Test")) return "[[ ]], which some shells read as a program";
  if (type.startsWith("Arithmetic")) return "arithmetic, which can run or change anything";
  return NAMES[type] ?? "an expansion";
}

/** For dash `time` is a program that runs its arguments, however bash parses them. */
function isPlainPipeline({ prefixes, commands }: Pipeline): boolean {
  const [first] = commands;
  if (prefixes.length > 1) return false;
  if (prefixes[0]?.type !== "Time") return true;
  return first?.type === "Command" && first.prefix.length === 0;
}

/** The delimiter is a plain name and the text contains no shell syntax, not even escaped. */
function isPlainText({ delimiter, body, closing }: HereDoc): boolean {
  if (closing === undefined || delimiter === undefined) return false;
  if (!/^(\w+|\\\w+|'\w+'|"\w+")$/.test(delimiter.text)) return false;
  return delimiter.quoted || !/[$`\\]/.test(body.text);
}

/** Turns a parsed word into a token; `known` only when all supported shells pass on the same text. */
export function readWord(word: Word): Token {
  const token = readParts(word);
  // Bash also expands `a=~/x` and `a=b:~/x` anywhere.
  return hasOpenTilde(word.text) ? { text: token.text, known: false } : token;
}

function readParts({ parts, text, value }: Word): Token {
  if (parts === undefined) return { text: value, known: text === "[" || isPlain(text) };
  const token = joined(parts.map(readPart));
  // Checked together: `{a"b",c}` has its braces and its comma in different parts.
  const unquoted = parts.flatMap((part) => (part.type === "Literal" ? [part.text] : []));
  return { text: token.text, known: token.known && isPlain(unquoted.join("")) };
}

function joined(tokens: readonly Token[]): Token {
  return {
    text: tokens.map((token) => token.text).join(""),
    known: tokens.every((token) => token.known),
  };
}

function readPart(part: WordPart): Token {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
      return { text: part.value, known: true };
    case "DoubleQuoted":
      return joined(part.parts.map(readQuoted));
    // `$'…'` is one string for bash and a dollar with a string for dash, so its value is unknown.
    case "AnsiCQuoted":
      return { text: part.value, known: false };
    case "Glob":
      return { text: part.text, known: false };
    case "SimpleExpansion":
      return { text: part.text === "$HOME" ? "~" : UNKNOWN, known: false };
    case "ParameterExpansion":
      return { text: isBareHome(part) ? "~" : UNKNOWN, known: false };
    default:
      return { text: UNKNOWN, known: false };
  }
}

function readQuoted(part: DoubleQuotedChild): Token {
  if (part.type !== "Literal") return readPart(part);
  return { text: part.value, known: !hasOpenSign(part.text) };
}

function isBareHome({
  parameter,
  text,
}: {
  readonly parameter: string;
  readonly text: string;
}): boolean {
  return parameter === "HOME" && text.length === 7;
}

/** Checks again what the parser calls plain text: it must contain no shell syntax. */
function isPlain(text: string): boolean {
  const unescaped = text.replace(/\\./gs, "");
  if (/[$`*?;&|<>()['"\\\n]/.test(unescaped)) return false;
  return !(unescaped.includes("{") && /,|\.\./.test(unescaped));
}

/** True for an unescaped dollar sign or backquote, which the shell may replace. */
function hasOpenSign(text: string): boolean {
  return /[$`]/.test(text.replace(/\\./gs, ""));
}

function hasOpenTilde(text: string): boolean {
  return /(^|[=:])~/.test(text.replaceAll("\\\n", ""));
}
