import { z } from "zod";
import { SallyportError } from "../../model/errors.ts";
import { fromIso, toIso } from "../../util/clock.ts";
import type { JsonObject, JsonValue } from "../../util/json.ts";
import type { Timers } from "../../util/timers.ts";

/** Any JSON. The body was already parsed strictly; only absence is refused here. */
export const json = z.any().refine((value) => value !== undefined, {
  error: "must be given",
}) as unknown as z.ZodType<JsonValue, JsonValue>;

export const jsonObject = z.record(z.string(), z.any()) as unknown as z.ZodType<
  JsonObject,
  JsonObject
>;

/** Names that become part of keys and screens; invalid ones are refused where they are used. */
export const name = z.string().min(1).max(512);
export const instant = z.string().max(30);
export const reason = z.string().max(10_000);

export const NO_INPUT = z.strictObject({});

export const paging = {
  limit: z.int().min(1).max(500).optional(),
  /** The `next` of the page before. */
  cursor: z.string().max(200).optional(),
};

export function list<Item extends z.ZodType>(item: Item) {
  return z.array(item).readonly();
}

export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: list(item),
    /** The `cursor` of the next page; null at the end. */
    next: z.string().nullable(),
  });
}

export const DEFAULT_PAGE = 100;

/** A place in a list. Opaque to clients; it names no record and means nothing in another tenant's list. */
export function cursorOf(place: number): string {
  return Buffer.from(`1:${place}`).toString("base64url");
}

/** The same for lists whose places are ids. */
export function idCursor(id: string): string {
  return Buffer.from(`2:${id}`).toString("base64url");
}

export function isIdCursor(cursor: string): boolean {
  return Buffer.from(cursor, "base64url").toString("latin1").startsWith("2:");
}

export function idOf(cursor: string): string {
  const text = Buffer.from(cursor, "base64url").toString("utf8");
  const id = text.slice(2);
  if (!text.startsWith("2:") || idCursor(id) !== cursor) throw noCursor();
  return id;
}

/** Throws invalid_input for a cursor that no page returned. */
export function placeOf(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  const text = Buffer.from(cursor, "base64url").toString("latin1");
  const place = /^1:(\d{1,15})$/.exec(text)?.[1];
  if (place === undefined || cursorOf(Number(place)) !== cursor) throw noCursor();
  return Number(place);
}

function noCursor(): SallyportError {
  const hint = "Pass the `next` of the previous page, unchanged.";
  return new SallyportError("invalid_input", { what: "cursor", hint });
}

/** An instant in ISO UTC format. Throws invalid_input. */
export function momentOf(text: string): string {
  try {
    return toIso(fromIso(text));
  } catch (error) {
    const hint = "Write a time like 2026-11-15T06:00:00.000Z.";
    throw new SallyportError("invalid_input", { what: "moment", hint }, error);
  }
}

/** One page of a list that was read with one item more than the limit. */
export function page<Item>(
  items: readonly Item[],
  limit: number,
  placeOfItem: (item: Item, index: number) => number,
): { items: readonly Item[]; next: string | null } {
  const shown = items.slice(0, limit);
  const last = shown.at(-1);
  const hasMore = items.length > limit && last !== undefined;
  return { items: shown, next: hasMore ? cursorOf(placeOfItem(last, shown.length - 1)) : null };
}

/** One page of a complete list. */
export function pageFrom<Item>(all: readonly Item[], cursor: string | undefined, limit: number) {
  const start = placeOf(cursor);
  return page(all.slice(start, start + limit + 1), limit, (_, index) => start + index + 1);
}

export interface BytePage<Item, Shown> {
  readonly limit: number;
  /** The place to begin after. */
  readonly after: number;
  readonly timers: Timers;
  read(after: number, count: number): Promise<readonly Item[]>;
  place(item: Item): number;
  /** Approximate size of the item in bytes. */
  weigh(item: Item): number;
  show(item: Item): Shown;
}

/** Most bytes that one page sends, and reads for that; at least one item is always returned. */
export const PAGE_BYTES = 1024 * 1024;
const READ_BYTES = 8 * 1024 * 1024;
const FIRST_CHUNK = 8;
const MOST_CHUNK = 32;

/**
 * One page of a list whose items may be large: limited by bytes as well as by number, and read in small parts, so that a
 * large list never blocks the process for long. `next` says where to continue, also after a page that is not full.
 */
export async function bytePage<Item, Shown>(list: BytePage<Item, Shown>) {
  const items: Shown[] = [];
  let { after } = list;
  let [sent, read, chunk] = [0, 0, FIRST_CHUNK];
  for (;;) {
    const count = Math.min(chunk, list.limit + 1 - items.length);
    const found = await list.read(after, count);
    for (const item of found) {
      const shown = list.show(item);
      const bytes = Buffer.byteLength(JSON.stringify(shown));
      const isFull = items.length >= list.limit || sent + bytes > PAGE_BYTES || read > READ_BYTES;
      if (items.length > 0 && isFull) return { items, next: cursorOf(after) };
      items.push(shown);
      sent += bytes;
      read += list.weigh(item);
      after = list.place(item);
    }
    if (found.length < count) return { items, next: null };
    chunk = Math.min(MOST_CHUNK, 2 * chunk);
    // Yield to other work between parts.
    await new Promise<void>((resolve) => list.timers.soon(resolve));
  }
}

/** How many of these, from the first, one page may send that has so many bytes already; one at least in an empty page. */
export function fitting(items: readonly unknown[], before = 0): number {
  let sent = before;
  const tooMany = items.findIndex((item, index) => {
    sent += bytesOf([item]);
    return index + before > 0 && sent > PAGE_BYTES;
  });
  return tooMany < 0 ? items.length : tooMany;
}

/** As sent, without what stands between them. */
export function bytesOf(items: readonly unknown[]): number {
  return items.reduce<number>((sum, item) => sum + Buffer.byteLength(JSON.stringify(item)), 0);
}
