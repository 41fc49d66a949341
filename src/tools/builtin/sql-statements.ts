import type { SqlDatabase, SqlRow, SqlStatement, SqlValue } from "./sql-database.ts";
import { columnsOf, type SqlTable } from "./sql-table.ts";

export const COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "is null", "is not null"] as const;

export interface SqlCondition {
  readonly column: string;
  readonly is: (typeof COMPARISONS)[number];
  readonly value?: SqlValue;
}

/** Puts statements together from declared names and numbered places. Values never become part of a text (T32). */
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
        return `SELECT ${list(columnsOf(table))} FROM ${target} WHERE ${keyIs(key, place)}${end}`;
      }),
    /** The one guarded write: by key and version, raising the version itself (I-14). */
    swap: (key: SqlRow, expected: number, set: SqlRow) =>
      build((place) => {
        const changes = [...assigned(set, place), `${version} = ${version} + 1`].join(", ");
        const guard = `${keyIs(key, place)} AND ${version} = ${place(expected)}`;
        return `UPDATE ${target} SET ${changes} WHERE ${guard}`;
      }),
    find: (conditions: readonly SqlCondition[], most: number) =>
      build((place) => {
        const where = all(conditions, place);
        return `SELECT ${list(columnsOf(table))} FROM ${target} WHERE ${where} ORDER BY ${list(table.key)} LIMIT ${most}`;
      }),
    findKeys: (keys: readonly SqlRow[]) =>
      build((place) => {
        const where = keys.map((key) => `(${keyIs(key, place)})`).join(" OR ");
        return `SELECT ${list(columnsOf(table))} FROM ${target} WHERE ${where} ORDER BY ${list(table.key)}`;
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

/** The comparison is looked up once more: the schema has checked it, but here it becomes part of a text. */
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
