import { errorText } from "../../util/error-text.ts";
import { errorCodeOf, Refusal } from "./refusal.ts";
import type { SqlAnswer, SqlDatabase, SqlRow, SqlStatement, SqlValue } from "./sql-database.ts";

/** What we need of better-sqlite3. */
export interface SqliteHandle {
  readonly inTransaction: boolean;
  exec(sql: string): unknown;
  prepare(sql: string): SqliteStatement;
}

interface SqliteStatement {
  readonly reader: boolean;
  readonly readonly: boolean;
  safeIntegers(on: boolean): SqliteStatement;
  run(...values: unknown[]): { readonly changes: number };
  iterate(...values: unknown[]): Iterable<unknown>;
}

/** PRAGMA and ATTACH count as reads for SQLite, so what a query may begin with is said here. */
const QUERY = /^(?:\s+|--[^\n]*(?:\n|$)|\/\*[\s\S]*?\*\/)*(?:SELECT|WITH|VALUES)\b/i;

/** Who opened the handle closes it. It is used synchronously: a slow query holds up the process. */
export function sqliteDatabase(options: { name: string; handle: SqliteHandle }): SqlDatabase {
  const { name, handle } = options;

  function inTransaction<Result>(end: "commit" | "rollback", work: () => Result): Result {
    if (handle.inTransaction) {
      throw new Refusal("conflict", "The database is in the middle of another change. Try again.");
    }
    handle.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      if (end === "commit") handle.exec("COMMIT");
      return result;
    } finally {
      if (handle.inTransaction) handle.exec("ROLLBACK");
    }
  }

  return {
    name,
    dialect: "sqlite",
    async read({ text, values }, maxRows) {
      try {
        return readOnly(handle, () => {
          const statement = QUERY.test(text) ? handle.prepare(text) : undefined;
          if (!statement?.reader || !statement.readonly) throw notAQuery();
          const rows = rowsOf(statement, values, maxRows + 1);
          return { rows: rows.slice(0, maxRows), more: rows.length > maxRows };
        });
      } catch (error) {
        throw asRefusal(error, `: ${errorText(error)}`);
      }
    },
    async transaction(work, end) {
      try {
        return inTransaction(end, () => {
          const steps = work();
          let step = steps.next();
          while (step.done !== true) step = steps.next(answer(handle, step.value));
          return step.value;
        });
      } catch (error) {
        throw asRefusal(error, ` (${errorCodeOf(error)})`);
      }
    },
  };
}

/** The second lock behind the look at the statement: SQLite itself refuses every write while this is on. */
function readOnly<Result>(handle: SqliteHandle, work: () => Result): Result {
  const [before] = rowsOf(handle.prepare("PRAGMA query_only"), [], 1);
  handle.exec("PRAGMA query_only = ON");
  try {
    return work();
  } finally {
    if (before?.["query_only"] !== 1) handle.exec("PRAGMA query_only = OFF");
  }
}

function answer(handle: SqliteHandle, { text, values }: SqlStatement): SqlAnswer {
  const statement = handle.prepare(text);
  if (statement.reader) return { rows: rowsOf(statement, values, Infinity), affected: 0 };
  return { rows: [], affected: statement.run(...values.map(toSqlite)).changes };
}

function rowsOf(statement: SqliteStatement, values: readonly SqlValue[], most: number): SqlRow[] {
  const rows: SqlRow[] = [];
  for (const row of statement.safeIntegers(true).iterate(...values.map(toSqlite))) {
    const columns = Object.entries(row as Record<string, unknown>);
    rows.push(Object.fromEntries(columns.map(([column, value]) => [column, fromSqlite(value)])));
    if (rows.length >= most) break;
  }
  return rows;
}

function fromSqlite(value: unknown): SqlValue {
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

function toSqlite(value: SqlValue): unknown {
  if (typeof value === "boolean") return value ? 1n : 0n;
  // A plain number would be bound as a real, and become "5.0" in a column of text.
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (typeof value !== "object" || value === null) return value;
  if ("$int" in value) return BigInt(value.$int);
  return "$real" in value ? Number(value.$real) : Buffer.from(value.$blob, "base64");
}

function notAQuery(): Refusal {
  return new Refusal(
    "not_allowed",
    "Only one query can be run here, beginning with SELECT, WITH or VALUES and changing nothing. Nothing was done. Use sql.update_row to change a row.",
  );
}

function asRefusal(error: unknown, detail: string): unknown {
  const isFromDatabase = errorCodeOf(error).startsWith("SQLITE_") || error instanceof RangeError;
  if (error instanceof Refusal || !isFromDatabase) return error;
  const busy = errorCodeOf(error).startsWith("SQLITE_BUSY");
  const advice = busy ? "Try again later." : "Check names and values.";
  return new Refusal(
    busy ? "conflict" : "unusable",
    `The database refused it${detail}. Nothing was changed. ${advice}`,
  );
}
