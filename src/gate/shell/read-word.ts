import type { DoubleQuotedChild, Word, WordPart } from "unbash";
import { type Token, UNKNOWN } from "./token.ts";

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
export function hasOpenSign(text: string): boolean {
  return /[$`]/.test(text.replace(/\\./gs, ""));
}

function hasOpenTilde(text: string): boolean {
  return /(^|[=:])~/.test(text.replaceAll("\\\n", ""));
}
