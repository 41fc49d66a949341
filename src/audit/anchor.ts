import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";
import { constants, createReadStream } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import path from "node:path";
import { SallyportError } from "../model/errors.ts";
import type { Instant } from "../model/names.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import { parseStrictJson } from "../util/strict-json.ts";

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
interface Line {
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

/**
 * Signs anchors. Created by `createSigner`, or custom for a key in a hardware module or another process: the key must
 * never be in the database, and is safest where no tool runs. Shape: callback; the anchorer waits for the signature.
 */
export interface AnchorSigner {
  readonly keyId: string;
  /** SPKI PEM. */
  readonly publicKey: string;
  /** Ed25519 over the text as UTF-8, in base64url. */
  sign(text: string): string | Promise<string>;
}

/** Public keys by their id. */
export type PublicKeys = ReadonlyMap<string, KeyObject>;

interface SigningKey {
  /** PKCS #8 PEM. Store it outside the database, readable by the anchorer alone. */
  readonly privateKey: string;
  /** SPKI PEM. Give it to verifiers through another channel than the anchors. */
  readonly publicKey: string;
  readonly keyId: string;
}

export function generateSigningKey(): SigningKey {
  const pair = generateKeyPairSync("ed25519");
  return {
    privateKey: pair.privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    publicKey: pair.publicKey.export({ type: "spki", format: "pem" }).toString(),
    keyId: keyIdOf(pair.publicKey),
  };
}

/** Throws invalid_input when the key is not an Ed25519 private key. */
export function createSigner({
  privateKey,
}: {
  readonly privateKey: string | KeyObject;
}): AnchorSigner {
  const key = readKey("private key", () =>
    typeof privateKey === "string" ? createPrivateKey(privateKey) : privateKey,
  );
  if (key.type !== "private") throw wrongKey("private key");
  const publicKey = createPublicKey(key);
  return {
    keyId: keyIdOf(publicKey),
    publicKey: publicKey.export({ type: "spki", format: "pem" }).toString(),
    sign: (text) => sign(null, Buffer.from(text), key).toString("base64url"),
  };
}

/**
 * Throws invalid_input when one of them is not an Ed25519 public key. A private key is rejected: it should not be here.
 */
export function publicKeys(keys: readonly (string | KeyObject)[]): PublicKeys {
  const known = new Map<string, KeyObject>();
  for (const given of keys) {
    if (typeof given === "string" && given.includes("PRIVATE")) throw wrongKey("public key");
    const key = readKey("public key", () =>
      typeof given === "string" ? createPublicKey(given) : given,
    );
    if (key.type !== "public") throw wrongKey("public key");
    known.set(keyIdOf(key), key);
  }
  return known;
}

export function isSignedBy(key: KeyObject, text: string, sig: string): boolean {
  const bytes = Buffer.from(sig, "base64url");
  // One signature has one spelling; Node's decoder also accepts others.
  if (bytes.length !== 64 || bytes.toString("base64url") !== sig) return false;
  return verify(null, Buffer.from(text), key, bytes);
}

/** The first 128 bits of the hash of the public key, enough to distinguish keys; the signature is the proof. */
function keyIdOf(publicKey: KeyObject): string {
  const der = publicKey.export({ type: "spki", format: "der" });
  return `ed25519:${sha256Hex(der).slice(0, 32)}`;
}

function readKey(what: string, read: () => KeyObject): KeyObject {
  try {
    const key = read();
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // Not passed on: the cause can repeat parts of the key.
  }
  throw wrongKey(what);
}

function wrongKey(what: string): SallyportError {
  const hint = `Give an Ed25519 ${what} as PEM, as generateSigningKey makes it.`;
  return new SallyportError("invalid_input", { what, hint });
}

/** Appended only, whatever other processes write; created with access for its owner alone. */
const APPEND = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT;
const OWNER_ONLY = 0o600;

/**
 * Anchors as lines of a file, which should be on another machine or disk than the database, or at least append-only
 * (`chattr +a`); only appending is needed.
 *
 * Any number of processes may share the file without a lock, which a crash could leave behind: a line is one write in
 * append mode, which the kernel does not interleave, and the format allows two lines to follow the same one. A partial
 * line left by a crash or a full disk is ended with a line feed before the next anchor and stays there, unreadable and
 * harmless; truncating it could hit a line of another process.
 */
export function fileAnchorSink({ file }: { readonly file: string }): AnchorSink {
  let seen = 0;
  return {
    async append(anchor) {
      // Opened each time: if the file is moved away, anchors must not continue unnoticed in the moved one.
      const handle = await open(file, APPEND, OWNER_ONLY);
      try {
        const { size } = await handle.stat();
        const line = `${anchorLine(anchor)}\n`;
        await writeAtOnce(handle, (await endsInsideLine(handle, size)) ? `\n${line}` : line);
        await handle.datasync();
        if (size === 0) await syncFolder(path.dirname(file));
      } finally {
        await handle.close();
      }
    },
    read: () => readAnchors(bytesFrom(file, 0)),
    async *news() {
      // After a truncation it continues from the new end. Starting over would make the cut chain look intact to the
      // next anchor.
      seen = Math.min(seen, await sizeOf(file));
      for await (const piece of wholeLines(bytesFrom(file, seen))) {
        seen += piece.length;
        yield* readAnchors([piece]);
      }
    },
  };
}

/**
 * A second write for the rest of a line could follow a line of another process; the whole line is written again
 * instead.
 */
async function writeAtOnce(handle: FileHandle, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  const { bytesWritten } = await handle.write(bytes);
  if (bytesWritten === bytes.length) return;
  const hint =
    "The disk of the anchor file is probably full; free some space, it is tried again by itself.";
  throw new SallyportError("store_unavailable", {
    written: bytesWritten,
    wanted: bytes.length,
    hint,
  });
}

async function endsInsideLine(handle: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return false;
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return bytesRead === 1 && buffer[0] !== LINE_FEED;
}

/** A new file is durable only when its folder is. Windows does not support or need this. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** No file means no anchors yet. */
async function* bytesFrom(file: string, start: number): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of createReadStream(file, { start })) yield chunk as Buffer;
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if (isMissing(error)) return 0;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

/** Pieces that end with a line feed; the rest is still being written, unless it is too long for a line. */
async function* wholeLines(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of source) {
    const bytes = Buffer.concat([rest, chunk]);
    let end = bytes.lastIndexOf(LINE_FEED) + 1;
    if (end === 0 && bytes.length > MAX_ANCHOR_BYTES) end = bytes.length;
    if (end > 0) yield bytes.subarray(0, end);
    rest = bytes.subarray(end);
  }
}
