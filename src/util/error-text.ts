const LONGEST = 500;
const LONGEST_SHOWN = 200;

/**
 * The text of a thrown value as one short line. Any value can be thrown: a value whose own description throws must not
 * turn a refusal into a crash, and line breaks must not forge log lines.
 */
export function errorText(error: unknown): string {
  return oneLine(messageOf(error));
}

function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message || error.name : error);
  } catch {
    return "an error that cannot be described";
  }
}

/** The code of an operating system error, such as ENOENT; empty for anything else. */
export function errorCodeOf(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : "";
  return typeof code === "string" ? code : "";
}

/** An address without its query and user name, which often hold secrets: messages are stored. */
export function withoutUrlSecrets(url: string): string {
  return url.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//");
}

/** One printable line of at most `longest` UTF-16 units that does not end inside a character. */
export function oneLine(text: string, longest: number = LONGEST): string {
  const isLong = text.length > longest;
  const cut = cutText(text.toWellFormed(), isLong ? longest - 1 : longest);
  const line = cut.replace(/[\p{Cc}\u2028\u2029]+/gu, " ").trim();
  return isLong ? `${line}…` : line;
}

/** At most `longest` UTF-16 units from the start, without splitting a character. */
export function cutText(text: string, longest: number): string {
  if (text.length <= longest) return text;
  const isInsidePair = (text.charCodeAt(longest) & 0xfc00) === 0xdc00;
  return text.slice(0, isInsidePair ? longest - 1 : longest);
}

/**
 * Untrusted text for use in a message: one line, printable ASCII, limited length. Escape codes and invisible or
 * reversed characters become visible, so that the subject of a message cannot forge the message.
 */
export function shown(text: string, longest: number = LONGEST_SHOWN): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return JSON.stringify(cut.toWellFormed()).replace(/[^\x20-\x7e…]/g, escapeUnit);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** The text of a thrown value, safe to show. Never throws. */
export function shownError(error: unknown): string {
  return shown(messageOf(error));
}

/** An impossible state. Not for anything that a caller, a network or a reviewer can cause: those have error codes. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";

  constructor(message: string) {
    super(`sallyport: this is a bug: ${message}`);
  }
}

/** Throws when an internal assumption is wrong, before a wrong record is written. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}
