import type { Page } from "../store/left-behind.ts";
import type { Damaged, Found } from "../store/readable.ts";

/** How many records of one list a round looks at. What is beyond is looked at by the next rounds, before anything comes again. */
const LOOKED_AT = 10_000;
const PAGE = 200;
/** So many sessions are worked on at the same time: one target that hangs holds up only its own. */
const AT_ONCE = 8;

/** Where the last round left a list off; 0 when it came to the end. Kept by the port that recovers. */
export interface Places {
  operations: number;
  approved: number;
  unasked: number;
}

export interface Round<Item> {
  read(page: Page): Promise<Found<Item>>;
  /** False ends the round. */
  work(item: Item): Promise<boolean>;
  /** Told of every record that cannot be read. Shape: push. */
  onDamaged(damaged: Damaged): void;
}

/**
 * Goes through a list from where the last round stopped, and around at its end, so that no number of records that cannot be
 * carried on hides the others. Those of one session come one after the other, oldest first. Answers where the next round
 * begins: 0 when everything was looked at.
 */
export async function goAround<Item extends { readonly sessionId: string }>(
  from: number,
  { read, work, onDamaged }: Round<Item>,
): Promise<{ readonly place: number; readonly ended: boolean }> {
  let after = from;
  let isAround = from === 0;
  for (let looked = 0; looked < LOOKED_AT; ) {
    const { items, damaged, next } = await read({ after, limit: PAGE });
    damaged.forEach(onDamaged);
    if (!(await workOn(items, work))) return { place: after, ended: false };
    looked += items.length + damaged.length;
    if (next !== undefined) after = next;
    else if (isAround) return { place: 0, ended: true };
    else [after, isAround] = [0, true];
    if (next !== undefined && isAround && from > 0 && next >= from)
      return { place: 0, ended: true };
  }
  return { place: after, ended: false };
}

async function workOn<Item extends { readonly sessionId: string }>(
  items: readonly Item[],
  work: (item: Item) => Promise<boolean>,
): Promise<boolean> {
  const sessions = [...Map.groupBy(items, ({ sessionId }) => sessionId).values()];
  let goesOn = true;
  async function next(): Promise<void> {
    for (let own = sessions.shift(); own !== undefined && goesOn; own = sessions.shift()) {
      for (const item of own) if (goesOn && !(await work(item))) goesOn = false;
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, sessions.length) }, next));
  return goesOn;
}
