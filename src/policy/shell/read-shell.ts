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

/** Scripts inside scripts (`sh -c 'sh -c …'`) are followed this far. */
const MOST_SHELLS = 8;

/** Nodes inside each other; about five for each substitution inside a substitution. */
const DEEPEST = 160;

/**
 * Takes a command apart with a real parser (unbash): lists, pipes, groups, loops, functions, substitutions, here
 * documents, and the texts that `sh -c` would read. Nothing is run and nothing is expanded. What cannot be resolved
 * completely is kept as a reason why no rule may allow the command; dangers are still looked for in the rest.
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
    visit(parse(command), {
      reader,
      depth: 0,
      nested: (text) => readInto(reader, text, shells + 1),
    });
  } catch (error) {
    // The parser promises to take anything. Should it ever not, the command is as unread as one that is too long.
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
    // What happens in a child process, changes of folder above all, ends with it.
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
 * Everything a script may consist of to be understood; what is not named here makes it not understood. No expansion is
 * among them: arithmetic, `${!x}`, `${x@P}` and their kind evaluate values once more, and what they run stands nowhere.
 */
// biome-ignore format: a list
const UNDERSTOOD: ReadonlySet<SyntaxNode["type"]> = new Set<SyntaxNode["type"]>([
  "Script", "Statement", "CompoundList", "AndOr", "Pipeline", "Time", "Negation", "Command", "Redirected", "Subshell",
  "BraceGroup", "If", "Elif", "While", "Case", "CaseItem", "Assignment", "Redirect", "FileDescriptor", "HereString",
  "HereDoc", "HereDocDelimiter", "HereDocBody", "Word", "Literal", "SingleQuoted", "DoubleQuoted", "Glob",
]);

/** Why a script with this in it is not understood, each as the rest of a sentence. */
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

/** For dash `time` is a program that runs the words behind it, whatever bash takes them for. */
function isPlainPipeline({ prefixes, commands }: Pipeline): boolean {
  const [first] = commands;
  if (prefixes.length > 1) return false;
  if (prefixes[0]?.type !== "Time") return true;
  return first?.type === "Command" && first.prefix.length === 0;
}

/** A plain name as delimiter, and in the text nothing that a shell looks at, also where it would be escaped. */
function isPlainText({ delimiter, body, closing }: HereDoc): boolean {
  if (closing === undefined || delimiter === undefined) return false;
  if (!/^(\w+|\\\w+|'\w+'|"\w+")$/.test(delimiter.text)) return false;
  return delimiter.quoted || !/[$`\\]/.test(body.text);
}

/** Turns a parsed word into a token; `known` only when every shell we know would pass on the same text. */
export function readWord(word: Word): Token {
  const token = readParts(word);
  // Bash also expands `a=~/x` and `a=b:~/x`, wherever they stand.
  return hasOpenTilde(word.text) ? { text: token.text, known: false } : token;
}

function readParts({ parts, text, value }: Word): Token {
  if (parts === undefined) return { text: value, known: text === "[" || isPlain(text) };
  const token = joined(parts.map(readPart));
  // Looked at together: `{a"b",c}` has its braces and its comma in different parts.
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
    // `$'…'` is one string for bash and a dollar with a string for dash, so nobody can say what it becomes.
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

/** A second look at what the parser calls a plain text: nothing in it may mean anything to a shell. */
function isPlain(text: string): boolean {
  const unescaped = text.replace(/\\./gs, "");
  if (/[$`*?;&|<>()['"\\\n]/.test(unescaped)) return false;
  return !(unescaped.includes("{") && /,|\.\./.test(unescaped));
}

/** True for a dollar sign or a backquote that is not escaped: where one stands, a shell may put something else. */
function hasOpenSign(text: string): boolean {
  return /[$`]/.test(text.replace(/\\./gs, ""));
}

function hasOpenTilde(text: string): boolean {
  return /(^|[=:])~/.test(text.replaceAll("\\\n", ""));
}
