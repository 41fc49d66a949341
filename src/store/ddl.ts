import { SallyportError } from "../model/errors.ts";
import type { CellType, RecordIndex, RecordTable, Slot } from "../model/record.ts";

/** What differs between the dialects. */
interface Dialect {
  /** Put before the names of tables. */
  readonly prefix: string;
  readonly types: Readonly<Record<CellType, string>>;
  ord(record: AnyRecord): string;
  /** Constraints of the key inside the table. */
  readonly key: readonly string[];
  end(record: AnyRecord): string;
  down(column: string): string;
  /** Statements for the key beside the table. */
  keyIndex(record: AnyRecord): readonly string[];
  readonly name: "sqlite" | "postgres";
}

type AnyRecord = Pick<RecordTable<never>, "name" | "slots"> & {
  readonly options: Pick<
    RecordTable<never>["options"],
    "indexes" | "checks" | "neverReusesOrd" | "fillfactor"
  >;
};

/** `ord` is the row id: inserts append, and the order of insertion is the order of creation. */
export const SQLITE: Dialect = {
  name: "sqlite",
  prefix: "",
  types: { text: "TEXT", int: "INTEGER", bytes: "BLOB" },
  ord: ({ options }) => `INTEGER PRIMARY KEY${options.neverReusesOrd ? " AUTOINCREMENT" : ""}`,
  key: [],
  end: () => " STRICT",
  down: (column) => `${column} DESC`,
  keyIndex: ({ name }) => [`CREATE UNIQUE INDEX ${name}_key ON ${name} (tenant, id);`],
};

/** The primary key starts with the id for the reason given at `byKey` in `postgres/statements.ts`. */
export const POSTGRES: Dialect = {
  name: "postgres",
  prefix: "$schema.",
  types: { text: "text", int: "bigint", bytes: "bytea" },
  ord: () => "bigint GENERATED ALWAYS AS IDENTITY",
  key: ["PRIMARY KEY (id, tenant)"],
  end: ({ options: { fillfactor } }) =>
    fillfactor === undefined ? "" : ` WITH (fillfactor = ${fillfactor})`,
  down: (column) => `${column} DESC NULLS LAST`,
  keyIndex: () => [],
};

/** The table of a record with its indexes. The tenant leads every index that serves a query. */
export function ddlOf(record: AnyRecord, dialect: Dialect): string {
  const { name, options } = record;
  const { prefix, types, key } = dialect;
  const columns = columnsOf(record);
  const lines = [
    `ord ${dialect.ord(record)}`,
    `tenant ${types.text} NOT NULL`,
    `id ${types.text} NOT NULL`,
    ...columns.map(([column, slots]) => columnOf(column, slots, types)),
    ...key,
    ...columns.flatMap(([column, slots]) => slots.flatMap((slot) => checksOf(column, slot))),
    ...(options.checks ?? []).map((check) => `CHECK (${check})`),
  ];
  const indexes = (options.indexes ?? []).filter(
    ({ only = dialect.name }) => only === dialect.name,
  );
  return [
    `CREATE TABLE ${prefix}${name} (\n  ${lines.join(",\n  ")}\n)${dialect.end(record)};`,
    ...dialect.keyIndex(record),
    ...indexes.map((index) => indexOf(name, index, dialect)),
  ].join("\n");
}

/** What migrations after the baseline brought: whole records, and columns of records. */
const LATER = {
  records: ["definitions", "pictures"],
  columns: new Map([["decisions", ["machine_verdict"]]]),
};

/** The records as the baseline made them. */
export function baselineOf<R extends AnyRecord>(records: readonly R[]): readonly AnyRecord[] {
  return records
    .filter(({ name }) => !LATER.records.includes(name))
    .map((record) => {
      const { name, options } = record;
      const later = LATER.columns.get(name) ?? [];
      return { name, options, slots: record.slots.filter(({ column }) => !later.includes(column)) };
    });
}

/** Columns in their order, each with the fields that are stored in it. */
function columnsOf({ slots }: AnyRecord): [string, Slot[]][] {
  const columns = new Map<string, Slot[]>();
  for (const slot of slots) {
    const { kind } = slot.field;
    if (kind === "key" || kind === "place") continue;
    columns.set(slot.column, [...(columns.get(slot.column) ?? []), slot]);
  }
  return [...columns];
}

function columnOf(column: string, slots: readonly Slot[], types: Dialect["types"]): string {
  const isNullable = slots.every(({ field }) => field.isOptional);
  const [slot] = slots;
  const type = slot === undefined || slot.field.isPacked ? "text" : slot.field.codec.cell;
  return `${column} ${types[type]}${isNullable ? "" : " NOT NULL"}`;
}

function checksOf(column: string, { field }: Slot): string[] {
  if (field.isPacked) return [];
  const { names, least } = field.codec;
  const listed = names?.map((name) => `'${name}'`).join(",");
  return [
    ...(listed === undefined ? [] : [`CHECK (${column} IN (${listed}))`]),
    ...(least === undefined ? [] : [`CHECK (${column} >= ${least})`]),
  ];
}

function indexOf(table: string, index: RecordIndex, { prefix, down }: Dialect): string {
  const { name, on, unique, whenSet } = index;
  const columns = on.map((column) => (typeof column === "string" ? column : down(column.down)));
  const kind = unique ? "UNIQUE INDEX" : "INDEX";
  const where = whenSet ? ` WHERE ${columns[0]} IS NOT NULL` : "";
  const keys = ["tenant", ...columns].join(", ");
  return `CREATE ${kind} ${table}_${name} ON ${prefix}${table} (${keys})${where};`;
}

/** Numbered, forward only. A migration that was released is never edited; a new one follows it. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

/** What has still to be run on a store that is at `current`. Throws store_incompatible for a store of a newer version. */
export function pendingMigrations(
  migrations: readonly Migration[],
  current: number,
): readonly Migration[] {
  const newest = migrations.at(-1)?.version ?? 0;
  if (current > newest) {
    const hint = "It was written by a newer version of Sallyport: upgrade this installation.";
    throw new SallyportError("store_incompatible", { schema: current, known: newest, hint });
  }
  return migrations.filter((migration) => migration.version > current);
}
