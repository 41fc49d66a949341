// Answers to a client over HTTP: one message as JSON, or a stream of them. In a session a stream that the client lost is
// continued where it was; without one, a lost connection ends the request.

import type { ServerResponse } from "node:http";
import { systemTimers } from "../util/timers.ts";
import type { Message } from "./message.ts";
import { eventText, KEEP_ALIVE } from "./sse.ts";

export interface ClientStream {
  push(message: Message): void;
  /** Nothing more comes. */
  end(): void;
  /** Writes into this response from now on, first what came after the event with this number. */
  attach(response: ServerResponse, after?: number): void;
  /** Lets the client come back later, where it can. */
  pause(): void;
  isOpen(): boolean;
  /** Resolves when the client can take more. Shape: callback. */
  ready(): Promise<void> | undefined;
}

export interface StreamTerms {
  /** The first part of the ids of its events; left out: it cannot be continued. */
  readonly id?: string;
  /** Whether a first event without a message says how the stream is continued. */
  readonly isPrimed: boolean;
  /** Asked at every sign of life; false ends the stream. Shape: callback. */
  readonly isValid: () => Promise<boolean>;
}

const KEEP_ALIVE_MS = 15_000;
const RETRY_MS = 1_000;
/** What is kept of one stream for a client that comes back. */
const MOST_EVENTS = 1_000;
const MOST_KEPT = 8 * 1024 * 1024;

export function openStream({ id, isPrimed, isValid }: StreamTerms): ClientStream {
  const kept: { readonly number: number; readonly data: string }[] = [];
  let keptSize = 0;
  let last = 0;
  let current: ServerResponse | undefined;
  let ended = false;
  let stopBeating = () => {};

  function write(number: number, data: string): void {
    const place = id === undefined ? {} : { id: `${id}_${number}` };
    current?.write(eventText({ data, ...place }));
  }

  function beat(): void {
    stopBeating = systemTimers.after(KEEP_ALIVE_MS, () => {
      void isValid().then(
        (valid) => {
          if (!valid) current?.destroy();
          else if (current?.writableNeedDrain === false) current.write(KEEP_ALIVE);
        },
        () => current?.destroy(),
      );
      if (current !== undefined) beat();
    });
  }

  function keep(number: number, data: string): void {
    if (id === undefined) return;
    kept.push({ number, data });
    keptSize += data.length;
    while (kept.length > MOST_EVENTS || (keptSize > MOST_KEPT && kept.length > 1)) {
      keptSize -= kept.shift()?.data.length ?? 0;
    }
  }

  return {
    push({ raw }) {
      last += 1;
      keep(last, raw);
      write(last, raw);
    },
    end() {
      ended = true;
      stopBeating();
      current?.end();
      current = undefined;
    },
    attach(response, after) {
      current?.end();
      stopBeating();
      current = response;
      response.writeHead(200, {
        "content-type": "text/event-stream",
        "cache-control": "no-store, no-transform",
      });
      response.flushHeaders();
      response.once("close", () => {
        if (current !== response) return;
        current = undefined;
        stopBeating();
      });
      if (after === undefined && isPrimed && id !== undefined) {
        response.write(eventText({ data: "", id: `${id}_${last}`, retryMs: RETRY_MS }));
      }
      // A new stream begins with what came before anybody listened.
      for (const { number, data } of kept) if (number > (after ?? 0)) write(number, data);
      if (ended) {
        response.end();
        current = undefined;
      } else beat();
    },
    pause() {
      if (id === undefined || !isPrimed) return;
      current?.end();
      current = undefined;
      stopBeating();
    },
    isOpen: () => !ended,
    ready: () => (current?.writableNeedDrain === true ? drained(current) : undefined),
  };
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    response.once("drain", resolve);
    response.once("close", resolve);
  });
}
