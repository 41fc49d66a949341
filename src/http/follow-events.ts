import type { ServerResponse } from "node:http";
import type { AuditEntry } from "../model/audit-entry.ts";
import type { Call, HttpContext } from "./route.ts";
import { maySee } from "./session-book.ts";

/**
 * Sends the feed until the listener goes away, its token ends or the server closes. Each event is checked when it is sent:
 * whoever may see only their own gets only those, and without data. Starts at the end of the trail unless told where.
 */
export async function followEvents(
  context: HttpContext,
  call: Call,
  start: number | undefined,
): Promise<void> {
  const { services, identity, signed, port, own } = call;
  const after = start ?? (await port.audit.head()).seq;
  const gone = new AbortController();
  context.env.outgoing.once("close", () => gone.abort());
  const pages = services.feeds.pages(identity.tenant, {
    after,
    signal: gone.signal,
    heartbeatMs: services.limits.heartbeatMs,
  });
  // The first page is asked for before anything is sent, so that a number that is not ours is still a proper refusal.
  let next = pages.next();
  const opened = await Promise.race([next, services.timers.sleep(0).then(() => undefined)]);
  if (opened?.done === true) return;
  const out = open(context, after);
  const isHead = context.env.incoming.method === "HEAD";
  try {
    for (;;) {
      // Who asks only for the headers would wait for ever: they are sent with the end.
      if (isHead) break;
      const { done, value: page } = await next;
      if (done === true || out.destroyed) break;
      if (!(await services.authenticator.isValid(signed))) break;
      const frames: string[] = [];
      for (const entry of page) {
        if (await maySee(call, entry.session)) frames.push(frameOf(entry, own === undefined));
      }
      // Nothing to see here still moves the place where a listener goes on.
      const last = page.at(-1);
      if (frames.length === 0)
        frames.push(last === undefined ? ": alive\n\n" : `id: ${last.seq}\n\n`);
      out.write(frames.join(""));
      // A listener that does not keep up would fill the memory. It comes back with the number of the last event it has.
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
  // The line is not used for anything else afterwards, so its end is the end of the answer: no chunks, one write for each page.
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
/** The same event goes to many listeners, so its text is made once. */
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
  const told = data === null ? null : (JSON.parse(data) as unknown);
  return { full: frame({ ...bare, data: told }), bare: frame({ ...bare, data: null }) };
}
