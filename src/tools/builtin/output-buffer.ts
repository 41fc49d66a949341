import type { Readable } from "node:stream";

export interface OutputBuffer {
  text(): string;
  /** How many bytes came beyond the limit. */
  dropped(): number;
}

/** Keeps the first `maxBytes` of a stream and goes on reading the rest, so that a program is never held up by its output. */
export function outputBuffer(stream: Readable, maxBytes: number): OutputBuffer {
  const chunks: Buffer[] = [];
  let kept = 0;
  let total = 0;
  stream.on("data", (chunk: Buffer) => {
    total += chunk.byteLength;
    const part = chunk.subarray(0, maxBytes - kept);
    if (part.byteLength > 0) chunks.push(part);
    kept += part.byteLength;
  });
  stream.on("error", () => {}); // The process' end tells what matters.
  return {
    text: () => Buffer.concat(chunks).toString("utf8"),
    dropped: () => total - kept,
  };
}
