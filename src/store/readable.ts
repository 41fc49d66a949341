import { isSallyportError } from "../model/errors.ts";
import { damaged } from "../model/field.ts";
import type { Instant } from "../model/names.ts";
import { toIso } from "../util/clock.ts";
import { errorText } from "../util/error-text.ts";
import { decodeValue } from "../util/value-codec.ts";
import type { Query, Row, Table } from "./engine.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** A record that is stored and cannot be read. */
export interface Damaged {
  readonly id: string;
  readonly reason: string;
}

/** One page of a list, oldest first. */
export interface Found<Item> {
  readonly items: readonly Item[];
  readonly damaged: readonly Damaged[];
  /** Where the next page begins; undefined at the end of the list. */
  readonly next: number | undefined;
}

/** One page. A row that cannot be read is named beside the others and hides none of them. */
export async function pageOf<Item>(
  engine: TenantEngine,
  table: Table,
  query: Query,
  read: (row: Row) => Item,
): Promise<Found<Item>> {
  const rows = await engine.find(table, query);
  const items: Item[] = [];
  const damaged: Damaged[] = [];
  for (const row of rows) {
    try {
      items.push(read(row));
    } catch (error) {
      if (!isSallyportError(error, "damaged_record")) throw error;
      damaged.push({ id: String(row["id"]), reason: errorText(error) });
    }
  }
  const last = rows.at(-1);
  const isEnd = rows.length < query.limit || last === undefined;
  return { items, damaged, next: isEnd ? undefined : Number(last["ord"]) };
}

/** As many readable rows as were asked for, as long as there are any: fewer mean that the list is at its end. */
export async function readable<Item>(
  engine: TenantEngine,
  table: Table,
  query: Query,
  read: (row: Row) => Item,
  onDamaged: (damaged: Damaged) => void = () => {},
): Promise<readonly Item[]> {
  const all: Item[] = [];
  let place: Pick<Query, "afterOrd"> = {};
  for (;;) {
    const limit = query.limit - all.length;
    const { items, damaged, next } = await pageOf(
      engine,
      table,
      { ...query, ...place, limit },
      read,
    );
    all.push(...items);
    damaged.forEach(onDamaged);
    if (next === undefined || all.length >= query.limit) return all;
    place = { afterOrd: next };
  }
}

/** All of a list that decides about something, page by page. Throws damaged_record: a rule that cannot be read is not left out. */
export async function everyOne<Item>(
  engine: TenantEngine,
  table: Table,
  where: NonNullable<Query["where"]>,
  read: (row: Row) => Item,
): Promise<readonly Item[]> {
  const all: Item[] = [];
  for (let afterOrd = 0; ; ) {
    const rows = await engine.find(table, { where, afterOrd, limit: PAGE });
    all.push(...rows.map(read));
    if (rows.length < PAGE) return all;
    afterOrd = Number(rows.at(-1)?.["ord"]);
  }
}

const PAGE = 1_000;

/** The value that was encoded into a cell. Throws damaged_record. */
export function decoded<Shape>(row: Row, column: string): Shape {
  const cell = row[column];
  if (typeof cell !== "string") throw damaged(row, column);
  try {
    return decodeValue(cell) as Shape;
  } catch (cause) {
    throw damaged(row, column, cause);
  }
}

/** A cell that holds a time. Throws damaged_record. */
export function instantIn(row: Row, column: string): Instant {
  try {
    return toIso(Number(row[column]));
  } catch (cause) {
    throw damaged(row, column, cause);
  }
}
