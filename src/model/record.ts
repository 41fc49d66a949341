import { fromIso, toIso } from "../util/clock.ts";
import { decodeValue, encodeValue } from "../util/value-codec.ts";
import { SallyportError } from "./errors.ts";
import type { Instant } from "./names.ts";

/** What every engine stores alike. Times are epoch milliseconds, structured values are encoded text. */
export type Cell = string | number | Uint8Array | null;
export type Row = Readonly<Record<string, Cell>>;
export type CellType = "text" | "int" | "bytes";

export type Values = Readonly<Record<string, Value>>;
export type Value = Cell | NowPlus | Plus;
/** The transaction's time by the store's clock, plus this many milliseconds. */
export interface NowPlus {
  readonly nowPlusMs: number;
}
/** The column's own value plus a number: versions and fences. */
interface Plus {
  readonly plus: number;
}
/** The most records that one list of a store returns. */
export const MAX_LIST = 1_000;

export const NOW: NowPlus = { nowPlusMs: 0 };

/** How a field looks outside: HTTP derives its schema from the kind. */
export type FieldKind =
  | "key"
  | "place"
  | "text"
  | "integer"
  | "flag"
  | "instant"
  | "name"
  | "bytes"
  | "data";

/** One field of a record: how it is checked, and how it is stored in a cell. */
export class Field<
  Out,
  In = Out,
  Kind extends FieldKind = FieldKind,
  Opt extends boolean = boolean,
> {
  readonly kind: Kind;
  readonly codec: Codec<Out, In>;
  /** The column; undefined for the field's own name in snake case. */
  readonly column: string | undefined = undefined;
  /** The field shares its column with others, which holds all of them as one encoded object. */
  readonly isPacked: boolean = false;
  readonly isOptional: Opt = false as Opt;
  /** What a null cell means. */
  readonly absent: Out | undefined = undefined;

  constructor(kind: Kind, codec: Codec<Out, In>, over: object = {}) {
    this.kind = kind;
    this.codec = codec;
    Object.assign(this, over);
  }

  as(column: string): Field<Out, In, Kind, Opt> {
    return new Field(this.kind, this.codec, { ...this, column });
  }

  /** Stored in this column together with all other fields that name it. */
  packedIn(column: string): Field<Out, In, Kind, Opt> {
    return new Field(this.kind, this.codec, { ...this, column, isPacked: true });
  }

  /** The column may be null, which reads as `absent`. */
  optional(): Field<Out | undefined, In, Kind, true>;
  optional(absent: Out): Field<Out, In, Kind, true>;
  optional(absent?: Out): Field<Out | undefined, In, Kind, true> {
    return new Field<Out | undefined, In, Kind, true>(this.kind, this.codec, {
      ...this,
      isOptional: true,
      absent,
    });
  }
}

interface Codec<Out, In> {
  readonly cell: CellType;
  /** `what` names the field in errors. Throws invalid_input, payload_too_large. */
  encode(value: In, what: string): Value;
  /** Throws whatever says why the cell is damaged. */
  decode(cell: Cell): Out;
  /** Of fields that share a column: whether this is a value of the field. */
  isValue(value: unknown): boolean;
  /** Text columns that hold one of these names; the database checks it too. */
  readonly names?: readonly string[];
  readonly unlimited?: boolean;
  /** Integer columns that never hold less; the database checks it too. */
  readonly least?: number;
}

/** The id of the record. */
export function key<Id extends string = string>(): Field<Id, Id, "key"> {
  return new Field<Id, Id, "key">("key", textCodec as Codec<Id, Id>, { column: "id" });
}

/** The place of the record in the order of insertion, for paging. */
export function place(): Field<number, number, "place"> {
  return new Field<number, number, "place">("place", integerCodec(), { column: "ord" });
}

/** Text without control characters, as it is: names, ids and hashes. */
export function text<Text extends string = string>(): Field<Text, Text, "text", false> {
  return new Field<Text, Text, "text", false>("text", textCodec as Codec<Text, Text>);
}

/** One of these names. The database refuses every other one. */
export function oneOf<const Name extends string>(
  names: readonly Name[],
): Field<Name, Name, "name", false> {
  const known = new Set<unknown>(names);
  const isValue = (value: unknown): value is Name => known.has(value);
  const codec: Codec<Name, Name> = {
    cell: "text",
    names,
    isValue,
    encode: (name) => name,
    decode: (cell) => (isValue(cell) ? cell : refuse("not one of the known names")),
  };
  return new Field<Name, Name, "name", false>("name", codec);
}

export function integer(least?: number): Field<number, number | NowPlus, "integer", false> {
  return new Field<number, number | NowPlus, "integer", false>("integer", integerCodec(least));
}

/** Yes or no, stored as 1 or 0. */
export function flag(): Field<boolean, boolean, "flag", false> {
  return new Field<boolean, boolean, "flag", false>("flag", {
    cell: "int",
    encode: (value) => (value ? 1 : 0),
    decode: (cell) => cell === 1,
    isValue: (value) => typeof value === "boolean",
  });
}

/** Yes or no, stored as one of two names. */
export function either(names: {
  readonly yes: string;
  readonly no: string;
}): Field<boolean, boolean, "flag", false> {
  const { yes, no } = names;
  return new Field<boolean, boolean, "flag", false>("flag", {
    ...flag().codec,
    cell: "text",
    names: Object.values(names),
    encode: (value) => (value ? yes : no),
    decode: (cell) => (cell === yes || cell === no ? cell === yes : refuse("another name")),
  });
}

export function instant(): Field<Instant, Instant | NowPlus, "instant", false> {
  return new Field<Instant, Instant | NowPlus, "instant", false>("instant", {
    cell: "int",
    encode: (value) => (typeof value === "string" ? fromIso(value) : value),
    decode: (cell) => toIso(wholeNumber(cell)),
    isValue: (value) => typeof value === "string" && toIso(fromIso(value)) === value,
  });
}

export function bytes(): Field<Uint8Array, Uint8Array, "bytes", false> {
  const isValue = (value: unknown): value is Uint8Array => value instanceof Uint8Array;
  return new Field<Uint8Array, Uint8Array, "bytes", false>("bytes", {
    cell: "bytes",
    isValue,
    // Copies both ways, and plain ones: a slice of a Buffer shares its memory, and drivers hand out Buffers.
    encode: (value) => new Uint8Array(value),
    decode: (cell) => (isValue(cell) ? new Uint8Array(cell) : refuse("no bytes")),
  });
}

interface DataOptions {
  /** Whether what was read is still what may be stored. */
  readonly check?: (value: unknown) => boolean;
  /** `none` for what has to be recorded whatever its size; otherwise at most 1 MiB of encoded text. */
  readonly limit?: "none";
}

/** Any structured value, encoded. */
export function data<Shape>(options: DataOptions = {}): Field<Shape, Shape, "data", false> {
  return new Field<Shape, Shape, "data", false>("data", dataCodec(options));
}

/** A list of names out of these, at least one, stored as one text with spaces between them. */
export function names<Name extends string>(
  known: readonly Name[],
): Field<readonly Name[], readonly Name[], "data", false> {
  const isValue = (list: unknown): list is readonly Name[] =>
    Array.isArray(list) && list.every((name) => known.includes(name));
  return new Field<readonly Name[], readonly Name[], "data", false>("data", {
    cell: "text",
    isValue,
    encode: (list) => list.join(" "),
    decode(cell) {
      const list = textCodec.decode(cell).split(" ");
      return isValue(list) ? list : refuse("not one of the known names");
    },
  });
}

/** Text with any characters in it. It is stored encoded, because one engine cannot store NUL. */
export function prose(options: DataOptions = {}): Field<string, string, "text", false> {
  const check = (value: unknown) => typeof value === "string";
  return new Field<string, string, "text", false>("text", dataCodec({ ...options, check }));
}

const textCodec: Codec<string, string> = {
  cell: "text",
  encode: (value) => value,
  decode: (cell) => (typeof cell === "string" ? cell : refuse("not a text")),
  isValue: (value) => typeof value === "string",
};

function integerCodec(least?: number): Codec<number, number | NowPlus> {
  return {
    cell: "int",
    encode: (value) => value,
    decode: wholeNumber,
    isValue: Number.isSafeInteger,
    ...(least === undefined ? {} : { least }),
  };
}

function dataCodec<Shape>({ check, limit }: DataOptions): Codec<Shape, Shape> {
  return {
    cell: "text",
    encode:
      limit === "none" ? (value) => encodeValue(value) : (value, what) => encoded(what, value),
    decode(cell) {
      const value = decodeValue(textCodec.decode(cell));
      return check?.(value) === false ? refuse("not a value of this field") : (value as Shape);
    },
    isValue: check ?? (() => true),
    unlimited: limit === "none",
  };
}

function wholeNumber(cell: unknown): number {
  return Number.isSafeInteger(cell) ? (cell as number) : refuse("not a whole number");
}

function refuse(why: string): never {
  throw new TypeError(why);
}

const MAX_ENCODED = 1024 * 1024;

/** Throws invalid_input for what is not data, such as a function, and payload_too_large. */
export function encoded(what: string, value: unknown): string {
  const text = asText(what, value);
  if (text.length <= MAX_ENCODED) return text;
  const hint = "Keep it elsewhere and store a reference.";
  const { length } = text;
  throw new SallyportError("payload_too_large", { what, length, limit: MAX_ENCODED, hint });
}

function asText(what: string, value: unknown): string {
  try {
    return encodeValue(value);
  } catch (cause) {
    const hint = "Pass plain data, without functions and symbols.";
    throw new SallyportError("invalid_input", { what, hint }, cause);
  }
}

/** The error for a stored row that cannot be what was written. */
export function damaged(row: Row, column: string, cause?: unknown): SallyportError {
  const hint = "Run a store check and compare with the audit trail before you trust this store.";
  return new SallyportError("damaged_record", { id: String(row["id"]), column, hint }, cause);
}

type AnyField = Field<unknown, never>;

/** Beside its columns every table has `tenant` and `id` (the key) and `ord` (the order of insertion). */
export interface Table {
  readonly name: string;
  readonly columns: Readonly<Record<string, CellType>>;
  /** Text columns with an index, for engines that keep indexes by themselves. */
  readonly indexed: readonly string[];
}

/** Fields by name. A nested object groups fields of the record that have columns of their own. */
type Fields = { readonly [name: string]: AnyField | { readonly [name: string]: AnyField } };

/** What is read: the TypeScript type of the record. */
export type RecordOf<Declared> = Declared extends RecordTable<infer F> ? ReadOf<F> : never;
type ReadOf<F> = {
  readonly [Name in keyof F]: F[Name] extends Field<infer Out, never> ? Out : ReadOf<F[Name]>;
};

/** What is written: everything but the key and the place. What is optional may be left out, and null clears it. */
type Given<F> = {
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

interface RecordOptions<F> {
  readonly indexes?: readonly RecordIndex[];
  /** Further conditions that the database checks, in SQL that all dialects have. */
  readonly checks?: readonly string[];
  /** Rows are deleted, and what pages or compares by `ord` must never meet a number again. */
  readonly neverReusesOrd?: true;
  /** How full, in per cent, PostgreSQL fills a page: free space lets an update stay on it without touching an index. */
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
