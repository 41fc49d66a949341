/** One bad byte in ten: beyond that it is no text with a flaw in it, and marks would not make it readable. */
const MOST_BAD = 1 / 10;

/**
 * Bytes as text for people. What is not UTF-8, and every NUL, becomes a visible mark such as `\xff`, so that one such byte
 * hides nothing of the rest. Undefined when too much of it is no text.
 */
export function visibleText(bytes: Uint8Array): string | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const pieces: string[] = [];
  const most = buffer.byteLength * MOST_BAD;
  let bad = 0;
  let start = 0;
  for (let at = 0; at < buffer.byteLength; ) {
    const length = characterLength(buffer, at);
    if (length > 0) {
      at += length;
      continue;
    }
    bad += 1;
    if (bad > most) return undefined;
    pieces.push(buffer.toString("utf8", start, at), markOf(buffer[at] ?? 0));
    at += 1;
    start = at;
  }
  pieces.push(buffer.toString("utf8", start));
  return pieces.join("");
}

function markOf(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, "0")}`;
}

/** How many bytes the character at this place has; 0 for a NUL and for what is not UTF-8 (RFC 3629). */
function characterLength(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0;
  if (first < 0x80) return first === 0 ? 0 : 1;
  const more = (offset: number, low = 0x80, high = 0xbf) => {
    const byte = bytes[at + offset] ?? 0;
    return byte >= low && byte <= high;
  };
  if (first >= 0xc2 && first <= 0xdf) return more(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    // Neither overlong forms nor surrogates.
    const second = first === 0xe0 ? more(1, 0xa0) : first === 0xed ? more(1, 0x80, 0x9f) : more(1);
    return second && more(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const second = first === 0xf0 ? more(1, 0x90) : first === 0xf4 ? more(1, 0x80, 0x8f) : more(1);
    return second && more(2) && more(3) ? 4 : 0;
  }
  return 0;
}
