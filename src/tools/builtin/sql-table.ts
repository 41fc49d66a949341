import { SallyportError } from "../../model/errors.ts";
import type { JsonObject } from "../../util/json.ts";
import { ToolRefusal } from "./file-place.ts";

/** A table as the operator declares it. Names in statements come only from here, never from an input (T32). */
export interface SqlTable {
  readonly name: string;
  readonly schema?: string;
  /** Columns of the primary key. */
  readonly key: readonly string[];
  /** The column of the row's version, a whole number that every change increments. */
  readonly version: string;
  /** All other columns that tools may read. */
  readonly columns: readonly string[];
  /** The columns that tools may change; by default all of `columns`. */
  readonly writable?: readonly string[];
}

type SqlTables = ReadonlyMap<string, SqlTable>;

/** Throws invalid_input for an inconsistent declaration. */
export function declareTables(tables: readonly SqlTable[]): SqlTables {
  for (const table of tables) {
    const all = tableColumns(table);
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
  throw new ToolRefusal(
    "not_found",
    `There is no such table here. Nothing was done. Use one of: ${[...tables.keys()].join(", ")}.`,
  );
}

export function tableColumns({ key, version, columns }: SqlTable): readonly string[] {
  return [...key, version, ...columns];
}

export function writableOf({ columns, writable = columns }: SqlTable): readonly string[] {
  return writable;
}

/** Throws a ToolRefusal for unknown names. */
export function expectColumns(
  given: readonly string[],
  known: readonly string[],
  what: string,
): void {
  if (given.every((column) => known.includes(column))) return;
  throw new ToolRefusal(
    "not_allowed",
    `${what} names a column that cannot be used there. Nothing was done. Use only: ${known.join(", ")}.`,
  );
}

/** Throws a ToolRefusal unless every column of the key has a value. */
export function expectKey(table: SqlTable, given: SqlRow): void {
  if (table.key.every((column) => Object.hasOwn(given, column) && given[column] !== null)) return;
  throw new ToolRefusal(
    "unusable",
    `The key is incomplete. Nothing was done. It needs a value for each of: ${table.key.join(", ")}.`,
  );
}

/** The current row; undefined when there is none. */
export async function readRow(
  database: SqlDatabase,
  table: SqlTable,
  key: SqlRow,
): Promise<SqlRow | undefined> {
  const query = sqlStatements(database, table).row(key, { lock: false });
  const { rows } = await database.read(query, 1);
  return rows[0];
}

export function sqlResource({ name }: SqlDatabase, table: string, access: "read" | "write") {
  return { kind: "other", id: `sql:${name}/${table}`, access } as const;
}

/** JSON Schema of the table's name, so that the model sees the choices. */
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

export const COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "is null", "is not null"] as const;

export interface SqlCondition {
  readonly column: string;
  readonly is: (typeof COMPARISONS)[number];
  readonly value?: SqlValue;
}

/** Builds statements from declared names and numbered parameters. Values never become part of the text (T32). */
export function sqlStatements({ dialect }: SqlDatabase, table: SqlTable) {
  const target =
    table.schema === undefined
      ? quoted(table.name)
      : `${quoted(table.schema)}.${quoted(table.name)}`;
  const version = quoted(table.version);

  function build(make: (place: (value: SqlValue) => string) => string): SqlStatement {
    const values: SqlValue[] = [];
    const text = make((value) => {
      values.push(value);
      return dialect === "postgres" ? `$${values.length}` : "?";
    });
    return { text, values };
  }

  type Place = (value: SqlValue) => string;
  const keyIs = (key: SqlRow, place: Place) =>
    table.key.map((column) => `${quoted(column)} = ${place(key[column] ?? null)}`).join(" AND ");
  const all = (conditions: readonly SqlCondition[], place: Place) =>
    conditions.map((condition) => one(condition, place)).join(" AND ");
  const assigned = (set: SqlRow, place: Place) =>
    Object.entries(set).map(([column, value]) => `${quoted(column)} = ${place(value)}`);

  return {
    /** `lock` keeps others from changing the row until the transaction ends; SQLite has one writer anyway. */
    row: (key: SqlRow, { lock }: { lock: boolean }) =>
      build((place) => {
        const end = lock && dialect === "postgres" ? " FOR UPDATE" : "";
        return `SELECT ${list(tableColumns(table))} FROM ${target} WHERE ${keyIs(key, place)}${end}`;
      }),
    /** The guarded write: by key and version, incrementing the version (I-14). */
    swap: (key: SqlRow, expected: number, set: SqlRow) =>
      build((place) => {
        const changes = [...assigned(set, place), `${version} = ${version} + 1`].join(", ");
        const guard = `${keyIs(key, place)} AND ${version} = ${place(expected)}`;
        return `UPDATE ${target} SET ${changes} WHERE ${guard}`;
      }),
    /** Every column, declared or not. */
    wholeRow: (key: SqlRow) =>
      build((place) => `SELECT * FROM ${target} WHERE ${keyIs(key, place)}`),
    removeVersion: (key: SqlRow, expected: number) =>
      build((place) => {
        const guard = `${keyIs(key, place)} AND ${version} = ${place(expected)}`;
        return `DELETE FROM ${target} WHERE ${guard}`;
      }),
    /** The number of triggers and foreign keys by which deleting a row may change others. */
    dependents: () =>
      build((place) =>
        dialect === "postgres"
          ? `SELECT (SELECT count(*) FROM pg_catalog.pg_constraint WHERE contype = 'f' AND confdeltype IN ('c', 'n', 'd') AND confrelid = ${place(target)}::regclass)
             + (SELECT count(*) FROM pg_catalog.pg_trigger WHERE NOT tgisinternal AND tgrelid = ${place(target)}::regclass) AS n`
          : `SELECT (SELECT count(*) FROM sqlite_schema AS s, pragma_foreign_key_list(s.name) AS f WHERE s.type = 'table' AND lower(f."table") = lower(${place(table.name)}) AND f.on_delete IN ('CASCADE', 'SET NULL', 'SET DEFAULT'))
             + (SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = lower(${place(table.name)})) AS n`,
      ),
    find: (conditions: readonly SqlCondition[], most: number) =>
      build((place) => {
        const where = all(conditions, place);
        return `SELECT ${list(tableColumns(table))} FROM ${target} WHERE ${where} ORDER BY ${list(table.key)} LIMIT ${most}`;
      }),
    findKeys: (keys: readonly SqlRow[]) =>
      build((place) => {
        const where = keys.map((key) => `(${keyIs(key, place)})`).join(" OR ");
        return `SELECT ${list(tableColumns(table))} FROM ${target} WHERE ${where} ORDER BY ${list(table.key)}`;
      }),
    count: (conditions: readonly SqlCondition[]) =>
      build((place) => `SELECT count(*) AS n FROM ${target} WHERE ${all(conditions, place)}`),
    update: (set: SqlRow, conditions: readonly SqlCondition[]) =>
      build((place) => {
        const changes = assigned(set, place).join(", ");
        return `UPDATE ${target} SET ${changes} WHERE ${all(conditions, place)}`;
      }),
    remove: (conditions: readonly SqlCondition[]) =>
      build((place) => `DELETE FROM ${target} WHERE ${all(conditions, place)}`),
    insert: (row: SqlRow) =>
      build((place) => {
        const places = Object.values(row).map(place).join(", ");
        return `INSERT INTO ${target} (${list(Object.keys(row))}) VALUES (${places})`;
      }),
  };
}

/** Looked up again: the schema has checked the comparison, but here it becomes part of a text. */
function one(
  { column, is, value = null }: SqlCondition,
  place: (value: SqlValue) => string,
): string {
  const comparison = COMPARISONS.find((known) => known === is) ?? "=";
  if (comparison === "is null" || comparison === "is not null") {
    return `${quoted(column)} ${comparison.toUpperCase()}`;
  }
  return `${quoted(column)} ${comparison} ${place(value)}`;
}

function list(columns: readonly string[]): string {
  return columns.map(quoted).join(", ");
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A value in inputs, results and undo records. Values that JSON cannot represent without loss are wrapped. */
export type SqlValue =
  | string
  | number
  | boolean
  | null
  | { readonly $int: string }
  | { readonly $real: string }
  | { readonly $blob: string };

export type SqlRow = { readonly [column: string]: SqlValue };

export interface SqlStatement {
  readonly text: string;
  readonly values: readonly SqlValue[];
}

export interface SqlAnswer {
  readonly rows: readonly SqlRow[];
  /** The number of rows that a write changed. */
  readonly affected: number;
}

/**
 * The work of one transaction: it yields statements and receives their answers. A generator, not a promise, because a
 * SQLite handle is shared: between two awaits, statements of other callers would run in this transaction.
 */
export type SqlWork<Result> = Generator<SqlStatement, Result, SqlAnswer>;

/**
 * The interface between the SQL tools and a database. `sqliteDatabase` and `postgresDatabase` create one from an open
 * handle. Shape: callback; the tools wait for every call.
 */
export interface SqlDatabase {
  /** Appears in resources as `sql:name/table`, which rules and write scopes refer to. */
  readonly name: string;
  readonly dialect: "sqlite" | "postgres";
  /** Runs one read-only query and returns its first rows. Throws a ToolRefusal when the database refuses. */
  read(query: SqlStatement, maxRows: number): Promise<{ rows: readonly SqlRow[]; more: boolean }>;
  /**
   * Runs the work in one transaction and commits or rolls back as requested; rolls back when the work throws. Throws a
   * ToolRefusal when the database refuses, outcome_unknown when the connection was lost during the commit.
   */
  transaction<Result>(work: () => SqlWork<Result>, end: "commit" | "rollback"): Promise<Result>;
}

const STAGING: unique symbol = Symbol("staging");

/** A database that the operator declared as staging. The only kind that writing SQL tools accept (I-16). */
export interface StagingDatabase {
  readonly [STAGING]: SqlDatabase;
}

/**
 * Declares that this handle leads to staging or shadow tables and never to production (I-16). This cannot be verified;
 * the declaration is explicit so that it is visible and searchable wherever a writing tool is created.
 */
export function stagingDatabase(database: SqlDatabase): StagingDatabase {
  return Object.freeze({ [STAGING]: database });
}

/** Throws invalid_input for an undeclared handle: tools are also created from JavaScript. */
export function openStaging(staging: StagingDatabase): SqlDatabase {
  const database = (staging as Partial<StagingDatabase> | undefined)?.[STAGING];
  if (database !== undefined) return database;
  const hint = "Tools that write need stagingDatabase(handle), so that their target is explicit.";
  throw new SallyportError("invalid_input", { what: "database", hint });
}
