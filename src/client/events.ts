import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { JsonObject } from "../util/json.ts";
import type { Timers } from "../util/timers.ts";
import { problemIn, type SendParts, waitMs } from "./create-client.ts";

/** One entry of the trail, as the feed sends it. `data` is null for listeners without access to it. */
export interface FeedEvent {
  readonly seq: number;
  readonly at: string;
  readonly type: string;
  readonly subject: string;
  readonly session: string;
  readonly actor: string;
  readonly dataHash: string;
  readonly hash: string;
  readonly data: JsonObject | null;
}

export interface EventsOptions {
  /** The number of the last known event; by default the feed starts with new events. */
  readonly after?: number;
  readonly signal?: AbortSignal;
  /** Called when the stream connects and when it breaks. Shape: push. */
  readonly onLine?: (state: "open" | "broken") => void;
}

/**
 * The feed until the signal is aborted: each event once and in order, also across broken connections and restarts of the
 * server. Throws only permanent errors: not signed in, not allowed, an invalid number.
 */
export async function* followEvents(
  parts: SendParts,
  options: EventsOptions = {},
): AsyncGenerator<FeedEvent> {
  const { signal, onLine } = options;
  let after = options.after;
  for (let failures = 0; !signal?.aborted; failures += 1) {
    const quiet = watchdog(parts.timers);
    try {
      const either = AbortSignal.any(
        signal === undefined ? [quiet.signal] : [quiet.signal, signal],
      );
      const response = await connect(parts, after, either);
      onLine?.("open");
      for await (const { id, data } of readFrames(response, quiet.heard)) {
        failures = 0;
        if (data !== undefined && (after === undefined || id > after)) {
          yield JSON.parse(data) as FeedEvent;
        }
        after = Math.max(after ?? 0, id);
      }
    } catch (error) {
      if (isSallyportError(error) && !isPassing(error)) throw error;
    } finally {
      quiet.end();
    }
    if (signal?.aborted) return;
    onLine?.("broken");
    await parts.timers.sleep(waitMs(failures, parts.random), signal).catch(() => {});
  }
}

/** The server sends heartbeats every few seconds. A connection silent for this long is dead. */
const QUIET_MS = 20_000;

function watchdog(timers: Timers): { signal: AbortSignal; heard(): void; end(): void } {
  const dead = new AbortController();
  const wait = () => timers.after(QUIET_MS, () => dead.abort());
  let cancel = wait();
  return {
    signal: dead.signal,
    heard() {
      cancel();
      cancel = wait();
    },
    end: () => cancel(),
  };
}

async function connect(
  parts: SendParts,
  after: number | undefined,
  signal: AbortSignal,
): Promise<Response> {
  const response = await parts.fetch(`${parts.url}/v1/events`, {
    headers: {
      ...parts.credentials(),
      Accept: "text/event-stream",
      ...(after === undefined ? {} : { "Last-Event-ID": String(after) }),
    },
    credentials: "same-origin",
    signal,
  });
  if (!response.ok) throw await problemIn(response);
  return response;
}

function isPassing(error: unknown): boolean {
  return error instanceof SallyportError && error.status >= 500 && error.code !== "damaged_record";
}

interface Frame {
  readonly id: number;
  /** Undefined for a message that only reports the position. */
  readonly data: string | undefined;
}

/** Server-sent events as the server writes them: `id`, `data`, an empty line. */
async function* readFrames(response: Response, heard: () => void): AsyncGenerator<Frame> {
  if (response.body === null) return;
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunksOf(response.body)) {
    heard();
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const frame = frameOf(part);
      if (frame !== undefined) yield frame;
    }
  }
}

/** Not every browser can iterate a stream. */
async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function frameOf(text: string): Frame | undefined {
  let id: number | undefined;
  const data: string[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("id: ")) id = Number(line.slice(4));
    if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  if (id === undefined) return undefined;
  return { id, data: data.length === 0 ? undefined : data.join("\n") };
}
