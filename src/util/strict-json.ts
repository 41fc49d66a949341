import { DEEPEST, JSON_LIMITS, type JsonLimits, type JsonValue } from "./json.ts";
import { JsonError } from "./json-error.ts";
import { JsonReader } from "./json-reader.ts";

/**
 * Parses JSON that somebody else wrote, once, so that nothing later can understand it differently.
 *
 * `JSON.parse` takes the last of two equal keys, turns 1e400 into Infinity, rounds integers above 2^53, lets lone
 * surrogates through (which all hash alike), builds trees that crash `JSON.stringify`, and on Node 24 and 26 may take a
 * key with an escape for one that an earlier text had (nodejs/node issue 63785). What a reviewer saw would then not be
 * what runs. None of this happens here: what is doubtful is refused, and what is returned has exactly one canonical
 * form, which gives the same value when parsed again. For that reason `-0` is read as `0`, as RFC 8785 writes it.
 *
 * Throws JsonError and nothing else for any text or bytes, however long, deep or broken.
 */
export function parseStrictJson(text: string | Uint8Array, limits: JsonLimits = {}): JsonValue {
  const maxBytes = limits.maxBytes ?? JSON_LIMITS.maxBytes;
  const maxDepth = limits.maxDepth ?? JSON_LIMITS.maxDepth;
  const maxNodes = limits.maxNodes ?? JSON_LIMITS.maxNodes;
  if (!(maxDepth >= 0 && maxDepth <= DEEPEST)) {
    throw new RangeError(`maxDepth must lie between 0 and ${DEEPEST}, got ${maxDepth}.`);
  }
  if (isLarger(text, maxBytes)) {
    throw new JsonError("too_large", {
      what: `the text is larger than ${maxBytes} bytes`,
      advice: "Send less, or send a reference to the data instead of the data.",
    });
  }
  const source = typeof text === "string" ? text : decodeUtf8(text);
  refuseByteOrderMark(source);
  refuseLoneSurrogates(source);
  return new JsonReader(source, maxDepth, maxNodes).document();
}

function isLarger(text: string | Uint8Array, maxBytes: number): boolean {
  if (typeof text !== "string") return !(text.byteLength <= maxBytes);
  // A UTF-16 unit takes one to three bytes, so most texts are settled by their length and never encoded.
  if (text.length * 3 <= maxBytes) return false;
  if (!(text.length <= maxBytes)) return true;
  return new TextEncoder().encode(text).byteLength > maxBytes;
}

// ignoreBOM means "do not strip it": the mark stays visible and is refused below.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new JsonError("bad_utf8", {
      what: "the bytes are not valid UTF-8",
      advice: "Encode the text as UTF-8.",
    });
  }
}

function refuseByteOrderMark(text: string): void {
  if (text.charCodeAt(0) !== 0xfeff) return;
  throw new JsonError("syntax", {
    what: "the text starts with a byte order mark",
    advice: "Send UTF-8 without a byte order mark.",
    at: 0,
  });
}

/** Surrogates written as escapes are looked for by the reader, string by string; this finds the literal ones. */
function refuseLoneSurrogates(text: string): void {
  if (text.isWellFormed()) return;
  // Only a string can arrive here, because UTF-8 cannot hold a lone surrogate: the caller is on our side of the wire.
  throw new JsonError("lone_surrogate", {
    what: "half of a surrogate pair stands alone",
    advice: "Send whole characters; a text was probably cut in the middle of one.",
    at: text.search(/\p{Surrogate}/u),
  });
}
