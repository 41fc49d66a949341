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
export interface Plus {
  readonly plus: number;
}
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

export type AnyField = Field<unknown, never>;
