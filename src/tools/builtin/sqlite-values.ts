import type { SqlRow, SqlValue } from "./sql-database.ts";

/** What we need of a prepared statement of better-sqlite3. */
export interface SqliteStatement {
  readonly reader: boolean;
  readonly readonly: boolean;
  safeIntegers(on: boolean): SqliteStatement;
  run(...values: unknown[]): { readonly changes: number };
  iterate(...values: unknown[]): Iterable<unknown>;
}

/** The first rows of a query, at most `most`. `tooLarge` throws when their text is longer than `mostBytes`. */
export function rowsOf(
  statement: SqliteStatement,
  values: readonly SqlValue[],
  limits: { readonly most: number; readonly mostBytes: number; readonly tooLarge: () => Error },
): SqlRow[] {
  const rows: SqlRow[] = [];
  let bytes = 0;
  for (const row of statement.safeIntegers(true).iterate(...values.map(toSqlite))) {
    const columns = Object.entries(row as Record<string, unknown>);
    for (const [, value] of columns) bytes += sizeOf(value);
    if (bytes > limits.mostBytes) throw limits.tooLarge();
    rows.push(Object.fromEntries(columns.map(([column, value]) => [column, fromSqlite(value)])));
    if (rows.length >= limits.most) break;
  }
  return rows;
}

function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  return value instanceof Uint8Array ? value.byteLength : 8;
}

export function fromSqlite(value: unknown): SqlValue {
  if (typeof value === "bigint") {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : { $int: String(value) };
  }
  // 1.0 and 1 are one number in JSON, but two kinds of value in a column without a type.
  if (typeof value === "number")
    return Number.isInteger(value) || !Number.isFinite(value) ? { $real: realText(value) } : value;
  if (value instanceof Uint8Array) return { $blob: Buffer.from(value).toString("base64") };
  return value as string | null;
}

function realText(value: number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}

export function toSqlite(value: SqlValue): unknown {
  if (typeof value === "boolean") return value ? 1n : 0n;
  // A plain number would be bound as a real, and become "5.0" in a column of text.
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value !== "object" || value === null) return value;
  if ("$int" in value) return BigInt(value.$int);
  return "$real" in value ? Number(value.$real) : Buffer.from(value.$blob, "base64");
}
