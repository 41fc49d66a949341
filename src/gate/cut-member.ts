import { InvariantError, invariant } from "../util/invariant.ts";

interface Member {
  readonly key: string;
  readonly keyAt: number;
  readonly valueEnd: number;
  /** Where the comma after it stands, or -1 for the last one. */
  readonly commaAt: number;
}

/**
 * The text of a JSON object without one of its members; every other byte stays, white space and spelling included. The
 * text must have passed the strict parser already: here nothing is checked, only found. Keys are compared as they read,
 * so a key that is spelled with escapes is found too.
 */
export function cutMember(text: string, key: string): string {
  let previousComma = -1;
  for (const member of membersOf(text)) {
    if (member.key !== key) {
      previousComma = member.commaAt;
      continue;
    }
    if (member.commaAt >= 0) return text.slice(0, member.keyAt) + text.slice(member.commaAt + 1);
    // The last member leaves with the comma before it, if there is one.
    const from = previousComma >= 0 ? previousComma : member.keyAt;
    return text.slice(0, from) + text.slice(member.valueEnd);
  }
  return text;
}

function* membersOf(text: string): Generator<Member> {
  let at = skipSpace(text, text.indexOf("{") + 1);
  while (text[at] === '"') {
    const keyAt = at;
    const keyEnd = endOfString(text, at);
    const key = JSON.parse(text.slice(keyAt, keyEnd)) as string;
    const valueAt = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const valueEnd = endOfValue(text, valueAt);
    at = skipSpace(text, valueEnd);
    const hasMore = text[at] === ",";
    yield { key, keyAt, valueEnd, commaAt: hasMore ? at : -1 };
    if (!hasMore) return;
    at = skipSpace(text, at + 1);
  }
}

function endOfValue(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') {
      at = endOfString(text, at) - 1;
      if (depth === 0) return at + 1;
    } else if (character === "{" || character === "[") {
      depth += 1;
    } else if (character === "}" || character === "]") {
      // Of a number or a word the closing bracket of the object around it is the end.
      if (depth === 0) return trimEnd(text, at);
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (character === "," && depth === 0) {
      return trimEnd(text, at);
    }
  }
  throw new InvariantError("cutMember was given a text that is not a JSON object");
}

function endOfString(text: string, from: number): number {
  let at = from + 1;
  while (text[at] !== '"') {
    invariant(at < text.length, "cutMember was given a text that is not a JSON object");
    at += text[at] === "\\" ? 2 : 1;
  }
  return at + 1;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (isSpace(text[at])) at += 1;
  return at;
}

function trimEnd(text: string, from: number): number {
  let at = from;
  while (isSpace(text[at - 1])) at -= 1;
  return at;
}

function isSpace(character: string | undefined): boolean {
  return character === " " || character === "\n" || character === "\r" || character === "\t";
}
