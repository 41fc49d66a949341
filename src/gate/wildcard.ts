/**
 * Matches a list against a list with gaps, in at most pattern × list steps: after a mismatch only the last gap is
 * widened, so nothing backtracks twice. No regular expression of a user is ever compiled (one of 29 characters can hold
 * a process for 19 seconds).
 */
export function matchWithGaps<Item, Piece>(
  items: ArrayLike<Item>,
  pattern: ArrayLike<Piece>,
  rules: {
    readonly isGap: (piece: Piece) => boolean;
    readonly fits: (piece: Piece, item: Item) => boolean;
    /** May a gap swallow this item? Everything, unless said otherwise. */
    readonly maySkip?: (item: Item) => boolean;
  },
): boolean {
  let at = 0;
  let next = 0;
  let gapAt = -1;
  let gapEnd = 0;
  while (at < items.length) {
    const piece = pattern[next] as Piece;
    if (next < pattern.length && rules.isGap(piece)) {
      gapAt = next;
      gapEnd = at;
      next += 1;
    } else if (next < pattern.length && rules.fits(piece, items[at] as Item)) {
      at += 1;
      next += 1;
    } else if (gapAt >= 0 && (rules.maySkip?.(items[gapEnd] as Item) ?? true)) {
      gapEnd += 1;
      at = gapEnd;
      next = gapAt + 1;
    } else {
      return false;
    }
  }
  while (next < pattern.length && rules.isGap(pattern[next] as Piece)) next += 1;
  return next === pattern.length;
}

/** A text against a pattern in which `*` stands for any run of characters. */
export function matchText(text: string, pattern: string): boolean {
  return matchWithGaps(text, pattern, {
    isGap: (piece) => piece === "*",
    fits: (piece, character) => piece === character,
  });
}
