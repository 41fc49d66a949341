import { SallyportError } from "../../model/errors.ts";
import type { JsonObject } from "../../util/json.ts";
import { Refusal } from "./refusal.ts";
import type { SqlDatabase } from "./sql-database.ts";

/** A table as the operator declares it. Names reach a statement only from here, never from an input (T32). */
export interface SqlTable {
  readonly name: string;
  readonly schema?: string;
  /** Columns of the primary key. */
  readonly key: readonly string[];
  /** The column with the row's version, a whole number that every change raises. */
  readonly version: string;
  /** All other columns that tools may see. */
  readonly columns: readonly string[];
  /** Those of them that tools may change; all when left out. */
  readonly writable?: readonly string[];
}

export type SqlTables = ReadonlyMap<string, SqlTable>;

/** Throws invalid_input for a description that contradicts itself. */
export function declareTables(tables: readonly SqlTable[]): SqlTables {
  for (const table of tables) {
    const all = columnsOf(table);
    const isUnique = new Set(all).size === all.length;
    const isWritable = writableOf(table).every((column) => table.columns.includes(column));
    if (table.key.length > 0 && isUnique && isWritable) continue;
    const hint =
      "A table needs a key, names each column once, and can only write columns that it lists.";
    throw new SallyportError("invalid_input", { table: table.name, hint });
  }
  return new Map(tables.map((table) => [table.name, table]));
}

export function tableNamed(tables: SqlTables, name: string): SqlTable {
  const table = tables.get(name);
  if (table !== undefined) return table;
  throw new Refusal(
    "not_found",
    `There is no such table here. Nothing was done. Use one of: ${[...tables.keys()].join(", ")}.`,
  );
}

export function columnsOf({ key, version, columns }: SqlTable): readonly string[] {
  return [...key, version, ...columns];
}

export function writableOf({ columns, writable = columns }: SqlTable): readonly string[] {
  return writable;
}

/** Throws a Refusal for names that are not among the known ones. */
export function expectColumns(
  given: readonly string[],
  known: readonly string[],
  what: string,
): void {
  if (given.every((column) => known.includes(column))) return;
  throw new Refusal(
    "not_allowed",
    `${what} names a column that cannot be used there. Nothing was done. Use only: ${known.join(", ")}.`,
  );
}

export function sqlResource({ name }: SqlDatabase, table: string, access: "read" | "write") {
  return { kind: "other", id: `sql:${name}/${table}`, access } as const;
}

/** JSON Schema of the table's name, so that the model sees which there are. */
export function tableInput(tables: SqlTables): JsonObject {
  return { enum: [...tables.keys()] };
}

export const VALUE_INPUT: JsonObject = {
  anyOf: [
    { type: ["string", "number", "boolean", "null"] },
    marked("$int", "^-?[0-9]{1,19}$"),
    marked("$real", "^(-?[0-9.]+(e[+-]?[0-9]+)?|-?Infinity|NaN)$"),
    marked("$blob", "^[A-Za-z0-9+/]*={0,2}$"),
  ],
};

export const ROW_INPUT: JsonObject = {
  type: "object",
  additionalProperties: VALUE_INPUT,
  minProperties: 1,
  maxProperties: 200,
};

function marked(name: string, pattern: string): JsonObject {
  return {
    type: "object",
    properties: { [name]: { type: "string", pattern } },
    required: [name],
    additionalProperties: false,
  };
}
