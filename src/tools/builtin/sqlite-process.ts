import { Worker } from "node:worker_threads";
import Database from "better-sqlite3";
import { errorText } from "../../util/error-text.ts";
import { errorCodeOf, Refusal } from "./refusal.ts";
import type { SqlAnswer } from "./sql-database.ts";
import { rowsOf, type SqliteStatement, toSqlite } from "./sqlite-values.ts";
import { WATCHDOG } from "./sqlite-watchdog-place.ts";
import type { SqliteFailure, SqliteOrder, SqliteReply } from "./sqlite-wire.ts";

/** Longer answers are refused: they would be copied through two processes and into a model's context. */
const MOST_BYTES = 4 * 1024 * 1024;
/** SQLite refuses to allocate more than this, so that one value cannot take the machine's memory. */
const MOST_MEMORY = 256 * 1024 * 1024;
const BUSY_MS = 5_000;

/**
 * The body of the process that runs SQL for `sqliteDatabase`. A query inside SQLite cannot be interrupted from JavaScript,
 * not even by ending its thread; a process can be killed.
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
      if (!statement.reader || !statement.readonly) throw new Refusal("not_allowed", NOT_A_QUERY);
      return { rows: rows(statement, order.values, order.most), affected: 0 };
    }
    writing ??= open(false);
    if (order.kind === "control") {
      // SQLite may have ended the transaction by itself; what was left open by an error is not part of the next one.
      const isBegin = order.text.startsWith("BEGIN");
      if (isBegin && writing.inTransaction) writing.exec("ROLLBACK");
      if (isBegin || writing.inTransaction) writing.exec(order.text);
      return { rows: [], affected: 0 };
    }
    const statement = writing.prepare(order.text) as unknown as SqliteStatement;
    if (statement.reader) {
      return { rows: rows(statement, order.values, Number.POSITIVE_INFINITY), affected: 0 };
    }
    return { rows: [], affected: statement.run(...order.values.map(toSqlite)).changes };
  }

  const rows = (statement: SqliteStatement, values: SqliteOrder["values"], most: number) =>
    rowsOf(statement, values, { most, mostBytes: MOST_BYTES, tooLarge });

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
  new Worker(WATCHDOG, { workerData: { parent: process.ppid } }).unref();
}

const NOT_A_QUERY =
  "Only one query can be run here, beginning with SELECT, WITH or VALUES and changing nothing. Nothing was done. Use sql.update_row to change a row.";

function tooLarge(): Refusal {
  return new Refusal(
    "too_large",
    `The rows are larger than ${MOST_BYTES} bytes. Nothing was changed. Ask for fewer columns or rows.`,
  );
}

function failureOf(error: unknown): SqliteFailure {
  const text = errorText(error);
  if (error instanceof Refusal) return { refused: error.code, code: "", text };
  const isFromDatabase = errorCodeOf(error).startsWith("SQLITE_") || error instanceof RangeError;
  return { code: isFromDatabase ? errorCodeOf(error) || "RANGE" : "", text };
}

serve(process.argv[2] ?? "");
