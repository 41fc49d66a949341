import { SallyportError } from "../model/errors.ts";
import type { Instant } from "../model/names.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import { parseStrictJson } from "../util/strict-json.ts";
import { type AnchorSigner, isSignedBy, type PublicKeys } from "./signing-key.ts";

export { createSigner, generateSigningKey } from "./signing-key.ts";

/**
 * A signed statement that a tenant's trail had this hash at this number at this time. Kept where nobody who can write to
 * the database can write, it shows later that the trail up to there is still the same.
 *
 * The anchors in one place hold each other as well, so that none can be taken out: each names the line that was last
 * when it was written (`prev`), and each writer counts its own (`n`). Several processes may write to one place without a
 * lock; then two lines may follow the same one, but every line still follows an earlier one, and no count has a hole.
 */
export interface Anchor {
  readonly v: 1;
  /** Whoever wrote it: a random id for each anchorer that was started. */
  readonly writer: string;
  /** This writer's first is 1. */
  readonly n: number;
  readonly tenant: string;
  readonly seq: number;
  readonly hash: string;
  readonly at: Instant;
  /** SHA-256 of the line before, `GENESIS` when the place was empty. */
  readonly prev: string;
  readonly keyId: string;
  /** Ed25519 over the canonical JSON of all fields above, in base64url. */
  readonly sig: string;
}

export type AnchorFacts = Omit<Anchor, "v" | "keyId" | "sig">;

/**
 * A place for anchors outside the database: a file, an object store with a lock, a log service, a colleague's machine.
 * Shape: callback; the anchorer waits for `append`, and pulls from `read` and `news`.
 */
export interface AnchorSink {
  /** Resolves when the anchor is durable there. After a failure the same anchor may come again; twice counts once. */
  append(anchor: Anchor): Promise<void>;
  /** All anchors in the order of writing. */
  read(): AsyncIterable<Anchor>;
  /**
   * Anchors that appeared since the last call, by any writer; the first call gives all. A place that several processes
   * share needs it, so that they link to each other's anchors and do not repeat them.
   */
  news?(): AsyncIterable<Anchor>;
}

export async function signAnchor(signer: AnchorSigner, facts: AnchorFacts): Promise<Anchor> {
  const { writer, n, tenant, seq, hash, at, prev } = facts;
  const unsigned = { v: 1, writer, n, tenant, seq, hash, at, prev, keyId: signer.keyId } as const;
  return { ...unsigned, sig: await signer.sign(canonicalJson(unsigned)) };
}

/** What is wrong with the signature: nothing (undefined), a key we do not know, or the anchor was changed or made up. */
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

/** What the next anchor in this place names as `prev`. */
export function anchorHash(anchor: Anchor): string {
  return sha256Hex(anchorLine(anchor));
}

const FIELDS = ["at", "hash", "keyId", "n", "prev", "seq", "sig", "tenant", "v", "writer"];
const TEXTS = ["at", "hash", "keyId", "prev", "sig", "tenant", "writer"];
export const MAX_ANCHOR_BYTES = 64 * 1024;

/** Reads exactly what `anchorLine` writes. Throws damaged_record; a signature is not looked at here. */
export function parseAnchorLine(line: string, number = 1): Anchor {
  try {
    const value = parseStrictJson(line, { maxBytes: MAX_ANCHOR_BYTES, maxDepth: 1 });
    if (isAnchor(value) && anchorLine(value) === line) return value;
  } catch {
    // Whatever the parser disliked, it is not an anchor.
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
 * The anchors in a text or byte stream. Lines that are none are passed over: a crash leaves half a line behind, and one
 * that was damaged on purpose is missed by the others.
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
