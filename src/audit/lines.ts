/** One line of a file; `text` is undefined when it is longer than the limit or not UTF-8. */
export interface Line {
  /** From 1. */
  readonly number: number;
  readonly text: string | undefined;
}

/** Bytes or text in pieces of any size, as file streams and HTTP bodies give them. Shape: pulled. */
export type TextSource = AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>;

const LINE_FEED = 0x0a;

/**
 * Cuts a stream at line feeds and nowhere else: U+2028, U+0085 and carriage returns are part of a line, because they may
 * stand inside a JSON text. Holds one line at a time, and of a line beyond `maxBytes` nothing.
 */
export async function* readLines(source: TextSource, maxBytes: number): AsyncGenerator<Line> {
  let number = 0;
  let parts: Uint8Array[] = [];
  let bytes = 0;
  let half = "";

  /** Text pieces may be cut inside a surrogate pair; its first half waits for the second. */
  function encode(piece: Uint8Array | string): Uint8Array {
    if (typeof piece !== "string") return piece;
    const text = half + piece;
    half = /[\ud800-\udbff]$/.test(text) ? text.slice(-1) : "";
    return Buffer.from(half === "" ? text : text.slice(0, -1));
  }
  function add(part: Uint8Array): void {
    bytes += part.byteLength;
    if (bytes > maxBytes) parts = [];
    else if (part.byteLength > 0) parts.push(part);
  }
  function finish(): Line {
    const text = bytes > maxBytes ? undefined : decode(parts);
    number += 1;
    parts = [];
    bytes = 0;
    return { number, text };
  }

  for await (const piece of source) {
    const chunk = encode(piece);
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      yield finish();
    }
    add(chunk.subarray(start));
  }
  add(Buffer.from(half));
  // A file that was cut off, or whose last line feed was trimmed, has a last line all the same.
  if (bytes > 0) yield finish();
}

// ignoreBOM means that a byte order mark is not swallowed: whoever parses the line sees it and can refuse.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decode(parts: readonly Uint8Array[]): string | undefined {
  try {
    return utf8.decode(parts.length === 1 ? parts[0] : Buffer.concat(parts));
  } catch {
    return undefined;
  }
}
