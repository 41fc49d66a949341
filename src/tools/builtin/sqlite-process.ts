import { Worker } from "node:worker_threads";
import Database from "better-sqlite3";
import { errorCodeOf, errorText } from "../../util/error-text.ts";
import { ToolRefusal } from "./file-place.ts";
import type { SqlAnswer, SqlRow, SqlValue } from "./sql-table.ts";
import type { SqliteFailure, SqliteOrder, SqliteReply } from "./sqlite-database.ts";

/** Longer answers are refused: they would be copied through two processes and into a model's context. */
const MOST_BYTES = 4 * 1024 * 1024;
/** SQLite's allocation limit, so that one value cannot exhaust the memory. */
const MOST_MEMORY = 256 * 1024 * 1024;
const BUSY_MS = 5_000;

/**
 * The main function of the process that runs SQL for `sqliteDatabase`. JavaScript cannot interrupt a query inside
 * SQLite, not even by ending its thread; a process can be killed.
 */
function serve(file: string): void {
  const open = (readonly: boolean) => {
    const options = { readonly, fileMustExist: true, timeout: BUSY_MS };
    const database = new Database(file, options);
    database.pragma(`hard_heap_limit = ${MOST_MEMORY}`);
    return database;
  };
  let reading: ReturnType<typeof open> | undefined;
  let writing: ReturnType<typeof open> | undefined;

  function answer(order: SqliteOrder): SqlAnswer {
    if (order.kind === "read") {
      reading ??= open(true);
      const statement = reading.prepare(order.text) as unknown as SqliteStatement;
      if (!statement.reader || !statement.readonly)
        throw new ToolRefusal("not_allowed", NOT_A_QUERY);
      return { rows: rowsOf(statement, order.values, order.most), affected: 0 };
    }
    writing ??= open(false);
    if (order.kind === "control") {
      // SQLite may have ended the transaction itself; one left open by an error must not continue into the next.
      const isBegin = order.text.startsWith("BEGIN");
      if (isBegin && writing.inTransaction) writing.exec("ROLLBACK");
      if (isBegin || writing.inTransaction) writing.exec(order.text);
      return { rows: [], affected: 0 };
    }
    const statement = writing.prepare(order.text) as unknown as SqliteStatement;
    if (statement.reader) {
      return { rows: rowsOf(statement, order.values, Number.POSITIVE_INFINITY), affected: 0 };
    }
    return { rows: [], affected: statement.run(...order.values.map(toSqlite)).changes };
  }

  process.on("message", (order: SqliteOrder) => {
    let reply: SqliteReply;
    try {
      reply = { answer: answer(order) };
    } catch (error) {
      reply = { failure: failureOf(error) };
    }
    process.send?.(reply);
  });
  process.on("disconnect", () => process.exit());
  const watchdog = `./sqlite-watchdog${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`;
  new Worker(new URL(watchdog, import.meta.url), { workerData: { parent: process.ppid } }).unref();
}

const NOT_A_QUERY =
  "Only one query that starts with SELECT, WITH or VALUES and changes nothing is accepted. Nothing was done. Use sql.update_row to change a row.";

function tooLarge(): ToolRefusal {
  return new ToolRefusal(
    "too_large",
    `The rows are larger than ${MOST_BYTES} bytes. Nothing was changed. Ask for fewer columns or rows.`,
  );
}

function failureOf(error: unknown): SqliteFailure {
  const text = errorText(error);
  if (error instanceof ToolRefusal) return { refused: error.code, code: "", text };
  const isFromDatabase = errorCodeOf(error).startsWith("SQLITE_") || error instanceof RangeError;
  return { code: isFromDatabase ? errorCodeOf(error) || "RANGE" : "", text };
}

serve(process.argv[2] ?? "");

/** The part of a better-sqlite3 statement that is used. */
interface SqliteStatement {
  readonly reader: boolean;
  readonly readonly: boolean;
  safeIntegers(on: boolean): SqliteStatement;
  run(...values: unknown[]): { readonly changes: number };
  iterate(...values: unknown[]): Iterable<unknown>;
}

/** The first rows of a query, at most `most`. */
function rowsOf(statement: SqliteStatement, values: readonly SqlValue[], most: number): SqlRow[] {
  const rows: SqlRow[] = [];
  let bytes = 0;
  for (const row of statement.safeIntegers(true).iterate(...values.map(toSqlite))) {
    const columns = Object.entries(row as Record<string, unknown>);
    for (const [, value] of columns) bytes += sizeOf(value);
    if (bytes > MOST_BYTES) throw tooLarge();
    rows.push(Object.fromEntries(columns.map(([column, value]) => [column, fromSqlite(value)])));
    if (rows.length >= most) break;
  }
  return rows;
}

function sizeOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  return value instanceof Uint8Array ? value.byteLength : 8;
}

function fromSqlite(value: unknown): SqlValue {
  if (typeof value === "bigint") {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : { $int: String(value) };
  }
  // 1.0 and 1 are one number in JSON, but two storage classes in a column without a type.
  if (typeof value === "number")
    return Number.isInteger(value) || !Number.isFinite(value) ? { $real: realText(value) } : value;
  if (value instanceof Uint8Array) return { $blob: Buffer.from(value).toString("base64") };
  return value as string | null;
}

function realText(value: number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}

function toSqlite(value: SqlValue): unknown {
  if (typeof value === "boolean") return value ? 1n : 0n;
  // A plain number would be bound as REAL and become "5.0" in a text column.
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value !== "object" || value === null) return value;
  if ("$int" in value) return BigInt(value.$int);
  return "$real" in value ? Number(value.$real) : Buffer.from(value.$blob, "base64");
}
