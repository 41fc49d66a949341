import type { AuditEntry } from "../model/audit-entry.ts";
import type { AuditReader } from "../store/store.ts";
import { cursorOf } from "./wire/common.ts";

/** How much of the trail one request looks through for the entries of one session. */
const LOOK = 500;
const MOST_LOOKS = 20;

/**
 * Entries of one session after a number, at most `limit`. The trail is in the order of time and of nothing else, so it is
 * looked through, a bounded part at a time: a page may have few entries, or none, and still say where to go on.
 */
export async function sessionPart(
  reader: AuditReader,
  { session, after, limit }: { session: string; after: number; limit: number },
): Promise<{ items: readonly AuditEntry[]; next: string | null }> {
  const items: AuditEntry[] = [];
  let place = after;
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const read = await reader.read({ after: place, limit: LOOK });
    for (const entry of read) {
      place = entry.seq;
      if (entry.session === session) items.push(entry);
      if (items.length === limit) return { items, next: cursorOf(place) };
    }
    if (read.length < LOOK) return { items, next: null };
  }
  return { items, next: cursorOf(place) };
}

export interface NewestQuery {
  readonly session?: string;
  /** Entries with this number and smaller ones are not read. */
  readonly after: number;
  /** Entries with this number and larger ones were read before; the end of the trail when left out. */
  readonly before?: number;
  readonly limit: number;
}

/** A page from the end of the trail, newest first. With a session it looks through a bounded part, as `sessionPart` does. */
export async function newestPart(
  reader: AuditReader,
  { session, after, before, limit }: NewestQuery,
): Promise<{ items: readonly AuditEntry[]; next: string | null }> {
  const items: AuditEntry[] = [];
  let end = before ?? (await reader.head()).seq + 1;
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const size = session === undefined ? limit - items.length : LOOK;
    const start = Math.max(after, end - 1 - size);
    const count = end - 1 - start;
    if (count <= 0) return { items, next: null };
    const read = await reader.read({ after: start, limit: count });
    for (const entry of read.toReversed()) {
      if (session === undefined || entry.session === session) items.push(entry);
      end = entry.seq;
      const isLast = end <= after + 1;
      if (items.length === limit) return { items, next: isLast ? null : cursorOf(end) };
    }
    if (read.length === 0) return { items, next: null };
  }
  return { items, next: end <= after + 1 ? null : cursorOf(end) };
}

/** The number of the last entry before a moment. Entries never run backwards in time, so halving finds it. */
export async function lastBefore(reader: AuditReader, moment: string): Promise<number> {
  let before = 0;
  let notBefore = (await reader.head()).seq + 1;
  while (notBefore - before > 1) {
    const middle = Math.floor((before + notBefore) / 2);
    const [entry] = await reader.read({ after: middle - 1, limit: 1 });
    if (entry !== undefined && entry.at < moment) before = middle;
    else notBefore = middle;
  }
  return before;
}
