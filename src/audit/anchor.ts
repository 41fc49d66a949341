import { SallyportError } from "../model/errors.ts";
import type { Instant } from "../model/names.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import { parseStrictJson } from "../util/strict-json.ts";
import { type AnchorSigner, isSignedBy, type PublicKeys } from "./signing-key.ts";

export { createSigner, generateSigningKey } from "./signing-key.ts";

/**
 * A signed statement that a tenant's chain had this hash at this number at this time. Stored where writers of the
 * database cannot write, it proves later that the chain up to there is unchanged.
 *
 * The anchors in one sink also link to each other, so that none can be removed: each names the last line at its writing
 * (`prev`), and each writer numbers its own (`n`). Several processes may write to one sink without a lock; then two
 * lines may follow the same one, but every line follows an earlier one, and no numbering has a gap.
 */
export interface Anchor {
  readonly v: 1;
  /** The writer: a random id for each started anchorer. */
  readonly writer: string;
  /** This writer's first is 1. */
  readonly n: number;
  readonly tenant: string;
  readonly seq: number;
  readonly hash: string;
  readonly at: Instant;
  /** SHA-256 of the line before, `GENESIS` when the sink was empty. */
  readonly prev: string;
  readonly keyId: string;
  /** Ed25519 over the canonical JSON of all fields above, in base64url. */
  readonly sig: string;
}

export type AnchorFacts = Omit<Anchor, "v" | "keyId" | "sig">;

/**
 * A sink for anchors outside the database: a file, an object store with a lock, a log service, another machine. Shape:
 * callback; the anchorer waits for `append`, and pulls from `read` and `news`.
 */
export interface AnchorSink {
  /** Resolves when the anchor is durable. After a failure the same anchor may be sent again; duplicates count once. */
  append(anchor: Anchor): Promise<void>;
  /** All anchors in the order of writing. */
  read(): AsyncIterable<Anchor>;
  /**
   * Anchors added since the last call, by any writer; the first call returns all. A sink shared by several processes
   * needs it, so that they link to each other's anchors and do not repeat them.
   */
  news?(): AsyncIterable<Anchor>;
}

export async function signAnchor(signer: AnchorSigner, facts: AnchorFacts): Promise<Anchor> {
  const { writer, n, tenant, seq, hash, at, prev } = facts;
  const unsigned = { v: 1, writer, n, tenant, seq, hash, at, prev, keyId: signer.keyId } as const;
  return { ...unsigned, sig: await signer.sign(canonicalJson(unsigned)) };
}

/** The problem with the signature: none (undefined), an unknown key, or a changed or forged anchor. */
export function signatureProblem(
  anchor: Anchor,
  keys: PublicKeys,
): "unknown_key" | "bad_signature" | undefined {
  const key = keys.get(anchor.keyId);
  if (key === undefined) return "unknown_key";
  const { sig, ...unsigned } = anchor;
  return isSignedBy(key, canonicalJson(unsigned), sig) ? undefined : "bad_signature";
}

export function anchorLine(anchor: Anchor): string {
  return canonicalJson(anchor);
}

/** The `prev` of the next anchor in this sink. */
export function anchorHash(anchor: Anchor): string {
  return sha256Hex(anchorLine(anchor));
}

const FIELDS = ["at", "hash", "keyId", "n", "prev", "seq", "sig", "tenant", "v", "writer"];
const TEXTS = ["at", "hash", "keyId", "prev", "sig", "tenant", "writer"];
export const MAX_ANCHOR_BYTES = 64 * 1024;

/** Parses exactly the output of `anchorLine`. Throws damaged_record; does not verify the signature. */
export function parseAnchorLine(line: string, number = 1): Anchor {
  try {
    const value = parseStrictJson(line, { maxBytes: MAX_ANCHOR_BYTES, maxDepth: 1 });
    if (isAnchor(value) && anchorLine(value) === line) return value;
  } catch {
    // Any parse error means that it is not an anchor.
  }
  const hint = `Line ${number} is not an anchor. Give a file that was written by an anchorer.`;
  throw new SallyportError("damaged_record", { line: number, hint });
}

function isAnchor(value: unknown): value is Anchor {
  if (typeof value !== "object" || value === null) return false;
  const anchor = value as Record<string, unknown>;
  return (
    Object.keys(anchor).sort().join() === FIELDS.join() &&
    TEXTS.every((name) => typeof anchor[name] === "string") &&
    anchor["v"] === 1 &&
    isCount(anchor["n"]) &&
    isCount(anchor["seq"])
  );
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}

/**
 * The anchors in a text or byte stream. Other lines are skipped: a crash leaves partial lines, and a deliberately
 * damaged anchor is missed by the links of the others.
 */
export async function* readAnchors(source: TextSource): AsyncGenerator<Anchor> {
  for await (const { number, text } of readLines(source, MAX_ANCHOR_BYTES)) {
    const anchor = text === undefined ? undefined : tryParse(text, number);
    if (anchor !== undefined) yield anchor;
  }
}

function tryParse(text: string, number: number): Anchor | undefined {
  try {
    return parseAnchorLine(text, number);
  } catch {
    return undefined;
  }
}

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
 * Splits a stream at line feeds only: U+2028, U+0085 and carriage returns are part of a line, because they may occur
 * inside a JSON text. Holds one line at a time, and nothing of a line beyond `maxBytes`.
 */
export async function* readLines(source: TextSource, maxBytes: number): AsyncGenerator<Line> {
  let number = 0;
  let parts: Uint8Array[] = [];
  let bytes = 0;
  let half = "";

  /** A piece may end inside a surrogate pair; its first half waits for the second. */
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
  // A truncated file, or one without a final line feed, still has a last line.
  if (bytes > 0) yield finish();
}

// ignoreBOM keeps a byte order mark, so that the parser of the line can reject it.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decode(parts: readonly Uint8Array[]): string | undefined {
  try {
    return utf8.decode(parts.length === 1 ? parts[0] : Buffer.concat(parts));
  } catch {
    return undefined;
  }
}
