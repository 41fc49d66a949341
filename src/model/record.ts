import { encodeValue } from "../util/value-codec.ts";
import {
  type AnyField,
  type CellType,
  damaged,
  data,
  encoded,
  Field,
  type Row,
  type Value,
  type Values,
} from "./field.ts";

/** Beside its columns every table has `tenant` and `id` (the key) and `ord` (the order of insertion). */
export interface Table {
  readonly name: string;
  readonly columns: Readonly<Record<string, CellType>>;
  /** Text columns with an index, for engines that keep indexes by themselves. */
  readonly indexed: readonly string[];
}

/** Fields by name. A nested object groups fields of the record that have columns of their own. */
export type Fields = { readonly [name: string]: AnyField | { readonly [name: string]: AnyField } };

/** What is read: the TypeScript type of the record. */
export type RecordOf<Declared> = Declared extends RecordTable<infer F> ? ReadOf<F> : never;
type ReadOf<F> = {
  readonly [Name in keyof F]: F[Name] extends Field<infer Out, never> ? Out : ReadOf<F[Name]>;
};

/** What is written: everything but the key and the place. What is optional may be left out, and null clears it. */
export type Given<F> = {
  readonly [Name in keyof F as InputKind<F[Name], "required", Name>]: InputOf<F[Name]>;
} & {
  readonly [Name in keyof F as InputKind<F[Name], "optional", Name>]?:
    | InputOf<F[Name]>
    | null
    | undefined;
};
type InputOf<Entry> = Entry extends Field<unknown, infer In> ? In : Given<Entry>;
type InputKind<Entry, Asked, Name> =
  Entry extends Field<unknown, never, infer Kind, infer Opt>
    ? Kind extends "key" | "place"
      ? never
      : Asked extends (Opt extends true ? "optional" : "required")
        ? Name
        : never
    : Asked extends "required"
      ? Name
      : never;

export interface RecordIndex {
  /** After the table's name and an underscore. */
  readonly name: string;
  /** Columns after the tenant, which leads every index. */
  readonly on: readonly (string | { readonly down: string })[];
  readonly unique?: true;
  /** Only rows where its column is not null are in it. */
  readonly whenSet?: true;
  /** SQLite orders by the row id anyway. */
  readonly only?: "postgres";
}

export interface RecordOptions<F> {
  readonly indexes?: readonly RecordIndex[];
  /** Further conditions that the database checks, in SQL that all dialects have. */
  readonly checks?: readonly string[];
  /** Rows are deleted, and what pages or compares by `ord` must never meet a number again. */
  readonly neverReusesOrd?: true;
  /** How full, in per cent, PostgreSQL fills a page: room lets an update stay on it without touching an index. */
  readonly fillfactor?: number;
  /** Names the column that does not fit the others of a row that was read. */
  readonly check?: (record: ReadOf<F>) => string | undefined;
}

/** A record, declared once. It is the table that engines work with, and it reads and writes the rows. */
export interface RecordTable<F> extends Table {
  readonly fields: F;
  readonly slots: readonly Slot[];
  readonly options: RecordOptions<F>;
  /** Throws damaged_record. */
  read(row: Row): ReadOf<F>;
  /** Reads these fields and leaves the others alone. */
  only<Name extends keyof F & string>(...names: Name[]): (row: Row) => Pick<ReadOf<F>, Name>;
  /** Reads all fields but these, such as large ones that few readers need. */
  without<Name extends keyof F & string>(...names: Name[]): (row: Row) => Omit<ReadOf<F>, Name>;
  /** All columns of a new row. */
  row(values: Given<F>): Values;
  /** The columns of the fields that are given. */
  cells(values: Partial<Given<F>>): Values;
}

/** One field with its place in the record and in the row. */
export interface Slot {
  readonly name: string;
  readonly group: string | undefined;
  readonly column: string;
  readonly field: AnyField;
}

export function record<const F extends Fields>(
  name: string,
  fields: F,
  options: RecordOptions<F> = {},
): RecordTable<F> {
  const slots = slotsOf(fields);
  const stored = slots.filter(({ field }) => field.kind !== "key" && field.kind !== "place");
  const columns = Object.fromEntries(stored.map(({ column, field }) => [column, cellOf(field)]));
  const leading = (options.indexes ?? []).map(({ on: [first] }) => String(first));
  const write = writerOf(stored);
  return {
    name,
    columns,
    indexed: [...new Set(leading)].filter((column) => columns[column] === "text"),
    fields,
    slots,
    options,
    read(row) {
      const result = readSlots(slots, row) as ReadOf<F>;
      const wrong = options.check?.(result);
      if (wrong !== undefined) throw damaged(row, wrong);
      return result;
    },
    only<Name extends keyof F & string>(...names: Name[]) {
      const some = slots.filter(({ name, group = name }) => (names as string[]).includes(group));
      return (row: Row) => readSlots(some, row) as Pick<ReadOf<F>, Name>;
    },
    without<Name extends keyof F & string>(...names: Name[]) {
      const some = slots.filter(({ name, group = name }) => !(names as string[]).includes(group));
      return (row: Row) => readSlots(some, row) as Omit<ReadOf<F>, Name>;
    },
    row: (values) => write(values as Groups, "all"),
    cells: (values) => write(values as Groups, "given"),
  };
}

type Groups = Readonly<Record<string, unknown>>;

function slotsOf(fields: Fields): readonly Slot[] {
  return Object.entries(fields).flatMap(([name, entry]) => {
    if (entry instanceof Field) return [slotOf(name, undefined, entry)];
    return Object.entries(entry).map(([inner, field]) => slotOf(inner, name, field));
  });
}

function slotOf(name: string, group: string | undefined, field: AnyField): Slot {
  return { name, group, field, column: field.column ?? wordsOf(name, "_") };
}

function wordsOf(name: string, between: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `${between}${letter.toLowerCase()}`);
}

function cellOf({ isPacked, codec }: AnyField): CellType {
  return isPacked ? "text" : codec.cell;
}

function readSlots(slots: readonly Slot[], row: Row): object {
  const result: Record<string, unknown> = {};
  const packs = new Map<string, Groups>();
  for (const slot of slots) {
    const { group, name, field } = slot;
    const value = field.isPacked ? unpacked(slot, row, packs) : readCell(slot, row);
    if (group === undefined) result[name] = value;
    else {
      const inner = (result[group] ?? {}) as Record<string, unknown>;
      inner[name] = value;
      result[group] = inner;
    }
  }
  return result;
}

function readCell({ column, field }: Slot, row: Row): unknown {
  const cell = row[column] ?? null;
  if (cell === null && field.isOptional) return field.absent;
  try {
    return field.codec.decode(cell);
  } catch (cause) {
    throw damaged(row, column, cause);
  }
}

function unpacked({ name, column, field }: Slot, row: Row, packs: Map<string, Groups>): unknown {
  let pack = packs.get(column);
  if (pack === undefined) {
    // Of a pack that is null every field is absent; one that must be there finds itself missing below.
    const value = readCell({ name, group: undefined, column, field: PACK }, row);
    if (typeof value !== "object" || value === null) throw damaged(row, column);
    pack = value as Groups;
    packs.set(column, pack);
  }
  const value = Object.hasOwn(pack, name) ? pack[name] : undefined;
  if (value === undefined && field.isOptional) return field.absent;
  if (!field.codec.isValue(value)) throw damaged(row, column);
  return value;
}

const PACK: AnyField = data<object>().optional({});

/** Writes cells in the order of the columns: engines keep one prepared statement per order. */
function writerOf(slots: readonly Slot[]) {
  const whats = new Map(slots.map((slot) => [slot, wordsOf(slot.name, " ")]));
  const unlimited = new Set(
    slots.filter(({ field }) => field.codec.unlimited === true).map(({ column }) => column),
  );
  return (values: Groups, which: "all" | "given"): Values => {
    const row: Record<string, Value> = {};
    const packs = new Map<string, Record<string, unknown>>();
    for (const slot of slots) {
      const { name, group, column, field } = slot;
      const from = group === undefined ? values : (values[group] as Groups | undefined);
      const value = from?.[name];
      if (field.isPacked) {
        // Its place among the columns; the text follows when all of the pack is known.
        if (which === "all") row[column] ??= null;
        if (value === undefined) continue;
        const pack = packs.get(column) ?? {};
        pack[name] = value;
        packs.set(column, pack);
      } else if (value === null) {
        row[column] = null;
      } else if (value !== undefined) {
        row[column] = field.codec.encode(value as never, whats.get(slot) ?? name);
      } else if (which === "all") {
        if (!field.isOptional) throw new TypeError(`${name} is not given`);
        row[column] = null;
      }
    }
    for (const [column, pack] of packs) {
      row[column] = unlimited.has(column) ? encodeValue(pack) : encoded(column, pack);
    }
    return row;
  };
}
