// Server-sent events, as Streamable HTTP uses them: read from an upstream, written to a client.

import { LARGEST_MESSAGE } from "./message.ts";

export interface StreamEvent {
  readonly data: string;
  readonly id?: string;
  readonly retryMs?: number;
}

/** The events of a response body. Throws when one is larger than any message may be. */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<StreamEvent> {
  const decoder = new TextDecoder();
  // Only what is new is searched for the end of a line, so that a long one costs no more than its length.
  let begun: string[] = [];
  let data: string[] = [];
  let size = 0;
  let id: string | undefined;
  let retryMs: number | undefined;
  for await (const piece of body) {
    const [first = "", ...more] = decoder.decode(piece, { stream: true }).split("\n");
    begun.push(first);
    size += first.length;
    for (const next of more) {
      const line = begun.join("").replace(/\r$/, "");
      begun = [next];
      if (line === "") {
        const event = { data: data.join("\n"), ...fields(id, retryMs) };
        if (data.length > 0 || id !== undefined || retryMs !== undefined) yield event;
        data = [];
        size = next.length;
        id = undefined;
        retryMs = undefined;
        continue;
      }
      size += next.length;
      const [, name = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
      if (name === "data") data.push(value);
      else if (name === "id" && !value.includes("\0")) id = value;
      else if (name === "retry" && /^\d{1,9}$/.test(value)) retryMs = Number(value);
    }
    if (size > LARGEST_MESSAGE) {
      throw new Error(`an event is larger than ${LARGEST_MESSAGE} characters`);
    }
  }
}

function fields(id: string | undefined, retryMs: number | undefined) {
  return { ...(id === undefined ? {} : { id }), ...(retryMs === undefined ? {} : { retryMs }) };
}

/** One event as text. A message is one line, so it is one field. */
export function eventText({ data, id, retryMs }: StreamEvent): string {
  const before = `${id === undefined ? "" : `id: ${id}\n`}${retryMs === undefined ? "" : `retry: ${retryMs}\n`}`;
  return `${before}data: ${data}\n\n`;
}

/** Keeps proxies from closing a stream that has nothing to say. */
export const KEEP_ALIVE = ": waiting\n\n";
