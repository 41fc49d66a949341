const LONGEST = 200;

/**
 * Foreign text as it may stand in a message: one line, printable ASCII, not too long. What a name hides (escape codes,
 * invisible and reversed characters) becomes visible, so that a message cannot be written by what it is about.
 */
export function shown(text: string, longest: number = LONGEST): string {
  const cut = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return JSON.stringify(cut.toWellFormed()).replace(/[^\x20-\x7e…]/g, escapeUnit);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** What a thrown value says, safe to show; describing it must not throw once more. */
export function shownError(error: unknown): string {
  try {
    return shown(error instanceof Error ? error.message || error.name : String(error));
  } catch {
    return '"an error that cannot be described"';
  }
}
