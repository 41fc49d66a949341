const LONGEST = 500;

/**
 * What a thrown value says, as one short line. Anything can be thrown, also by code that means harm: a value whose own
 * description throws must not turn a refusal into a crash, and line breaks must not forge lines of a log.
 */
export function errorText(error: unknown): string {
  try {
    const text = error instanceof Error ? `${error.message || error.name}` : String(error);
    return oneLine(text, LONGEST);
  } catch {
    return "an error that cannot be described";
  }
}

/** One printable line of at most `longest` UTF-16 units, never ending in half a character. */
export function oneLine(text: string, longest: number): string {
  const cut = text.length > longest ? `${text.slice(0, longest - 1)}…` : text;
  return cut
    .toWellFormed()
    .replace(/\p{Cc}|\u2028|\u2029/gu, " ")
    .trim();
}
