import type { Timers } from "../util/timers.ts";
import { cursorOf } from "./wire/common.ts";

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

/** How many of these, from the first, one page may send; one at least. */
export function fitting(items: readonly unknown[]): number {
  let sent = 0;
  const tooMany = items.findIndex((item, index) => {
    sent += Buffer.byteLength(JSON.stringify(item));
    return index > 0 && sent > PAGE_BYTES;
  });
  return tooMany < 0 ? items.length : tooMany;
}
