const LONGEST = 500;

/**
 * The text of a thrown value as one short line. Any value can be thrown: a value whose own description throws must not
 * turn a refusal into a crash, and line breaks must not forge log lines.
 */
export function errorText(error: unknown): string {
  try {
    return oneLine(error instanceof Error ? error.message || error.name : String(error));
  } catch {
    return "an error that cannot be described";
  }
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
