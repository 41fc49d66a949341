import type { IncomingMessage } from "node:http";
import type { Readable, Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { errorText } from "../../util/error-text.ts";
import { AnswerLost } from "./send-request.ts";

export interface HttpBody {
  readonly encoding: "utf8" | "base64";
  readonly content: string;
  readonly truncated: boolean;
}

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** Encodings that we can take back, for the request's head. */
export const ACCEPTED_ENCODINGS = "gzip, deflate, br";

/**
 * The body as text where it is one, else as base64. The limit counts what comes out of the decoder, so that a small
 * answer which unpacks to gigabytes is cut like a large one.
 */
export async function readBody(response: IncomingMessage, maxBytes: number): Promise<HttpBody> {
  const chunks: Buffer[] = [];
  let total = 0;
  try {
    for await (const chunk of decoded(response)) {
      chunks.push(chunk as Buffer);
      total += (chunk as Buffer).byteLength;
      if (total > maxBytes) break;
    }
  } catch (error) {
    throw new AnswerLost(`the answer broke off: ${errorText(error)}`, { cause: error });
  } finally {
    response.destroy();
  }
  const bytes = Buffer.concat(chunks).subarray(0, maxBytes);
  const truncated = total > maxBytes;
  const text = textOf(bytes, response.headers["content-type"] ?? "", truncated);
  return text === undefined
    ? { encoding: "base64", content: bytes.toString("base64"), truncated }
    : { encoding: "utf8", content: text, truncated };
}

function decoded(response: IncomingMessage): Readable {
  const name = (response.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (name === "identity" || name === "") return response;
  if (!Object.hasOwn(DECODERS, name)) throw new Error(`its encoding ${name} is not known`);
  const decoder = DECODERS[name]?.() as Transform;
  // A broken connection must reach whoever reads the decoder; pipe alone would leave it waiting for ever.
  response.once("error", (error) => decoder.destroy(error));
  response.once("aborted", () => decoder.destroy(new Error("the connection was lost")));
  return response.pipe(decoder);
}

function textOf(bytes: Buffer, contentType: string, truncated: boolean): string | undefined {
  if (/^(?:image|audio|video|font)\/(?!svg)/i.test(contentType)) return undefined;
  const charset = /charset\s*=\s*"?([\w-]+)/i.exec(contentType)?.[1] ?? "utf-8";
  try {
    // A cut may go through the middle of a character; streaming leaves that one out.
    return new TextDecoder(charset, { fatal: true }).decode(bytes, { stream: truncated });
  } catch {
    return undefined;
  }
}
