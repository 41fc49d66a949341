import { z } from "zod";
import { SallyportError } from "../../model/errors.ts";
import { fromIso, toIso } from "../../util/clock.ts";
import type { JsonObject, JsonValue } from "../../util/json.ts";
import type { Timers } from "../../util/timers.ts";

/** Any JSON. The body was parsed strictly before; here only its absence is refused. */
export const json = z.any().refine((value) => value !== undefined, {
  error: "must be given",
}) as unknown as z.ZodType<JsonValue, JsonValue>;

export const jsonObject = z.record(z.string(), z.any()) as unknown as z.ZodType<
  JsonObject,
  JsonObject
>;

/** Names that end up in keys and on screens; what is no name is refused by whoever uses it, in its own words. */
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
    /** Give it as `cursor` for what comes after; null at the end. */
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

/** Throws invalid_input for what no page gave out. */
export function placeOf(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  const text = Buffer.from(cursor, "base64url").toString("latin1");
  const place = /^1:(\d{1,15})$/.exec(text)?.[1];
  if (place === undefined || cursorOf(Number(place)) !== cursor) throw noCursor();
  return Number(place);
}

function noCursor(): SallyportError {
  const hint = "Give the `next` of the page before, unchanged.";
  return new SallyportError("invalid_input", { what: "cursor", hint });
}

/** A moment, written as all of ours are. Throws invalid_input for what is none. */
export function momentOf(text: string): string {
  try {
    return toIso(fromIso(text));
  } catch (error) {
    const hint = "Write a moment like 2026-11-15T06:00:00.000Z.";
    throw new SallyportError("invalid_input", { what: "moment", hint }, error);
  }
}

/** One page out of a list that was asked for with one more than the limit. */
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

/** One page of a list that is there as a whole. */
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
  /** Roughly how many bytes the whole item has. */
  weigh(item: Item): number;
  show(item: Item): Shown;
}

/** What one page sends, and what it reads for that, at most; one item is always given. */
export const PAGE_BYTES = 1024 * 1024;
const READ_BYTES = 8 * 1024 * 1024;
const FIRST_CHUNK = 8;
const MOST_CHUNK = 32;

/**
 * One page of a list whose items may be large: limited by bytes as well as by number, and read in small parts, so that a
 * list of megabytes never stops the process for long. `next` says where to continue, also after a page that is not full.
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
    // Others get their turn between two parts.
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

/** The same without what is undefined: a field that was left out stays left out. */
export function defined<Fields extends object>(fields: Fields): Defined<Fields> {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(kept) as Defined<Fields>;
}

export type Defined<Fields> = {
  [Name in keyof Fields as undefined extends Fields[Name] ? never : Name]: Fields[Name];
} & {
  [Name in keyof Fields as undefined extends Fields[Name] ? Name : never]?: Exclude<
    Fields[Name],
    undefined
  >;
};
