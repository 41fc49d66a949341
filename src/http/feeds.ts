import type { ServerResponse } from "node:http";
import { followTrail } from "../audit/trail.ts";
import type { AuditEntry } from "../model/audit-entry.ts";
import type { AuditReader, Store } from "../store/store.ts";
import type { Timers } from "../util/timers.ts";
import { type Call, type HttpContext, maySee } from "./route.ts";

/** The trails of all tenants for many listeners: each trail is read once, however many listen. */
export interface Feeds {
  /**
   * Pages of entries after a number, in order, each entry once, without gaps; an empty page after a long wait. Ends when
   * the signal is aborted. Throws what `followTrail` throws. Shape: pulled.
   */
  pages(tenant: string, terms: FeedTerms): AsyncGenerator<readonly AuditEntry[]>;
  readonly listeners: number;
  close(): void;
}

export interface FeedTerms {
  readonly after: number;
  readonly signal: AbortSignal;
  readonly heartbeatMs: number;
}

/** Enough for a listener to resume after a short interruption without reading the store. */
const KEPT = 2_048;
const PAGE = 500;
const REST_MS = 20;

export function createFeeds(store: Store, timers: Timers): Feeds {
  const tails = new Map<string, Tail>();
  const closing = new AbortController();
  let listeners = 0;

  function tailOf(tenant: string): Tail {
    const there = tails.get(tenant);
    if (there !== undefined) return there;
    const tail: Tail = new Tail(store.tenant(tenant).audit, store, timers, () => {
      if (tails.get(tenant) === tail) tails.delete(tenant);
    });
    tails.set(tenant, tail);
    return tail;
  }

  return {
    get listeners() {
      return listeners;
    },
    async *pages(tenant, { after: start, signal: gone, heartbeatMs }) {
      const signal = AbortSignal.any([gone, closing.signal]);
      const waiter = { wake: () => {} };
      signal.addEventListener("abort", () => waiter.wake(), { once: true });
      const reader = store.tenant(tenant).audit;
      const tail = tailOf(tenant);
      const leave = tail.enter();
      listeners += 1;
      let after = start;
      try {
        // Also refuses a number beyond the end: waiting there would skip new entries.
        for await (const entry of first(reader, start, timers)) {
          after = entry.seq;
          yield [entry];
        }
        while (!signal.aborted) {
          const page = tail.after(after) ?? (await reader.read({ after, limit: PAGE }));
          const last = page.at(-1);
          if (last !== undefined) {
            after = last.seq;
            yield page;
            continue;
          }
          const hasNews = await tail.news(after, heartbeatMs, waiter);
          if (!hasNews && !signal.aborted) yield [];
        }
      } finally {
        listeners -= 1;
        leave();
      }
    },
    close() {
      closing.abort();
      for (const tail of tails.values()) tail.close();
    },
  };
}

/** Throws if the feed cannot start there. */
async function* first(reader: AuditReader, after: number, timers: Timers) {
  const stop = new AbortController();
  stop.abort();
  yield* followTrail(reader, { after, signal: stop.signal, timers });
}

/** The newest entries of one tenant, kept while there are listeners. */
class Tail {
  readonly #entries: AuditEntry[] = [];
  readonly #stop = new AbortController();
  readonly #timers: Timers;
  readonly #ended: () => void;
  readonly #waiting = new Set<() => void>();
  #isResting = false;
  #isRungAgain = false;
  #users = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(reader: AuditReader, store: Store, timers: Timers, ended: () => void) {
    this.#timers = timers;
    this.#ended = ended;
    this.#run(reader, store).catch((error: unknown) => {
      this.#failure = { error };
      this.close();
    });
  }

  enter(): () => void {
    this.#users += 1;
    return () => {
      this.#users -= 1;
      if (this.#users === 0) this.close();
    };
  }

  /** Removed first, so that new listeners do not wait on a closed tail. */
  close(): void {
    this.#ended();
    this.#stop.abort();
    this.#ring();
  }

  /** Kept entries after a number; undefined when that is too old, or the tail has just started. */
  after(seq: number): readonly AuditEntry[] | undefined {
    if (this.#failure !== undefined) throw this.#failure.error;
    const oldest = this.#entries[0]?.seq;
    if (oldest === undefined || seq < oldest - 1) return undefined;
    return this.#entries.slice(seq - oldest + 1, seq - oldest + 1 + PAGE);
  }

  /** Waits for an entry after this one; false on time-out. `waiter` can be woken from outside meanwhile. */
  async news(seq: number, ms: number, waiter: Waiter): Promise<boolean> {
    const last = this.#entries.at(-1)?.seq ?? 0;
    if (last > seq || this.#failure !== undefined) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const wake = () => resolve(true);
    // A timer and a set: an abort controller for each wait took a third of the time with 200 listeners.
    const stopWaiting = this.#timers.after(ms, () => resolve(false));
    this.#waiting.add(wake);
    waiter.wake = wake;
    const hasNews = await promise;
    stopWaiting();
    this.#waiting.delete(wake);
    return hasNews;
  }

  async #run(reader: AuditReader, store: Store): Promise<void> {
    const { seq: after } = await reader.head();
    const options = {
      after,
      signal: this.#stop.signal,
      onCommit: (listener: () => void) => store.onCommit(listener),
      timers: this.#timers,
    };
    for await (const entry of followTrail(reader, options)) {
      this.#entries.push(entry);
      if (this.#entries.length >= 2 * KEPT) this.#entries.splice(0, KEPT);
      this.#ringSoon();
    }
  }

  #ring(): void {
    for (const wake of this.#waiting) wake();
  }

  /** Immediate after a pause; under load a few entries share a wake-up, and so a write per connection. */
  #ringSoon(): void {
    if (this.#isResting) {
      this.#isRungAgain = true;
      return;
    }
    this.#ring();
    this.#isResting = true;
    this.#timers.after(REST_MS, () => {
      this.#isResting = false;
      if (!this.#isRungAgain) return;
      this.#isRungAgain = false;
      this.#ringSoon();
    });
  }
}

interface Waiter {
  wake: () => void;
}

/**
 * Sends the feed until the listener goes away, its token ends or the server closes. Each event is checked when it is sent:
 * a listener limited to its own sessions gets only those, without data. Starts at the end of the trail by default.
 */
export async function sendEvents(
  context: HttpContext,
  call: Call,
  start: number | undefined,
): Promise<void> {
  const { services, identity, signed, gate, own } = call;
  const after = start ?? (await gate.audit.head()).seq;
  const gone = new AbortController();
  context.env.outgoing.once("close", () => gone.abort());
  const pages = services.feeds.pages(identity.tenant, {
    after,
    signal: gone.signal,
    heartbeatMs: services.limits.heartbeatMs,
  });
  // The first page is read before anything is sent, so that an invalid number can still be refused.
  let next = pages.next();
  const opened = await Promise.race([next, services.timers.sleep(0).then(() => undefined)]);
  if (opened?.done === true) return;
  const out = open(context, after);
  const isHead = context.env.incoming.method === "HEAD";
  try {
    for (;;) {
      // A HEAD request would wait for ever: end the response with the headers.
      if (isHead) break;
      const { done, value: page } = await next;
      if (done === true || out.destroyed) break;
      if (!(await services.authenticator.isValid(signed))) break;
      const frames: string[] = [];
      for (const entry of page) {
        if (await maySee(call, entry.session)) frames.push(frameOf(entry, own === undefined));
      }
      // Filtered entries still advance the listener's position.
      const last = page.at(-1);
      if (frames.length === 0)
        frames.push(last === undefined ? ": alive\n\n" : `id: ${last.seq}\n\n`);
      out.write(frames.join(""));
      // A slow listener would fill the memory. It reconnects with the number of its last event.
      if (out.writableLength > services.limits.listenerBytes) break;
      next = pages.next();
    }
  } catch (error) {
    services.report(error);
  } finally {
    await pages.return(undefined);
    out.end();
  }
}

function open(context: HttpContext, after: number): ServerResponse {
  const out = context.env.outgoing as ServerResponse;
  // The connection is not reused, so its end is the end of the response: no chunked encoding, one write per page.
  out.useChunkedEncodingByDefault = false;
  out.writeHead(200, {
    ...Object.fromEntries(context.res.headers),
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    Connection: "close",
    "X-Accel-Buffering": "no",
  });
  out.write(`retry: 1000\nid: ${after}\n\n`);
  return out;
}

interface Frames {
  readonly full: string;
  readonly bare: string;
}
/** The same event goes to many listeners, so it is serialised once. */
const frames = new WeakMap<AuditEntry, Frames>();

function frameOf(entry: AuditEntry, withData: boolean): string {
  const made = frames.get(entry) ?? makeFrames(entry);
  frames.set(entry, made);
  return withData ? made.full : made.bare;
}

function makeFrames(entry: AuditEntry): Frames {
  const { seq, at, type, subject, session, actor, dataHash, hash, data } = entry;
  const bare = { seq, at, type, subject, session, actor, dataHash, hash };
  const frame = (event: object) => `id: ${seq}\nevent: entry\ndata: ${JSON.stringify(event)}\n\n`;
  const parsed = data === null ? null : (JSON.parse(data) as unknown);
  return { full: frame({ ...bare, data: parsed }), bare: frame({ ...bare, data: null }) };
}
