import path from "node:path";
import { SallyportError } from "../../model/errors.ts";
import { systemTimers, TimeoutError, type Timers } from "../../util/timers.ts";
import { Refusal } from "./refusal.ts";
import { startsLikeQuery } from "./skip-comments.ts";
import type { SqlDatabase, SqlStatement } from "./sql-database.ts";
import { type AskSqlite, GONE, isSqliteError, SqliteProcesses } from "./sqlite-processes.ts";

/** What we need of better-sqlite3: where its file is. */
export interface SqliteHandle {
  readonly name: string;
  readonly memory: boolean;
}

export type SqliteDatabaseOptions = {
  /** Stands in resources as `sql:name/table`. */
  readonly name: string;
  /** How long one query or one change may take; 10 seconds when left out. Then it is ended and nothing was changed. */
  readonly deadlineMs?: number;
  readonly timers?: Timers;
} & (
  | { readonly file: string }
  /** An open handle of better-sqlite3; only its file name is used. */
  | { readonly handle: SqliteHandle }
);

const DEADLINE_MS = 10_000;

/**
 * A SQLite database in a file. SQL runs in processes of its own, with connections of their own: a query that does not end
 * is killed at its deadline and never holds up this process. Throws invalid_input for a database in memory, which no other
 * process can open.
 */
export function sqliteDatabase(options: SqliteDatabaseOptions): SqlDatabase {
  const { name, deadlineMs = DEADLINE_MS, timers = systemTimers } = options;
  const processes = new SqliteProcesses({ file: fileOf(options), deadlineMs, timers });

  return {
    name,
    dialect: "sqlite",
    async read({ text, values }, maxRows) {
      // PRAGMA and ATTACH count as reads for SQLite, so what a query may begin with is checked here.
      if (!startsLikeQuery(text)) throw notAQuery();
      const order = { kind: "read", text, values, most: maxRows + 1 } as const;
      try {
        const { rows } = await processes.use((ask) => ask(order));
        return { rows: rows.slice(0, maxRows), more: rows.length > maxRows };
      } catch (error) {
        throw asRefusal(error, (message) => `: ${message}`);
      }
    },
    async transaction(work, end) {
      const progress = { isCommitting: false };
      try {
        return await processes.use((ask) => inTransaction(ask, work, end, progress));
      } catch (error) {
        if (progress.isCommitting && isCutOff(error)) throw unknown(error);
        throw asRefusal(error, (_, code) => ` (${code})`);
      }
    },
  };
}

async function inTransaction<Result>(
  ask: AskSqlite,
  work: Parameters<SqlDatabase["transaction"]>[0],
  end: "commit" | "rollback",
  progress: { isCommitting: boolean },
): Promise<Result> {
  const control = (text: string) => ask({ kind: "control", text, values: [] });
  const step = ({ text, values }: SqlStatement) => ask({ kind: "step", text, values });
  await control("BEGIN IMMEDIATE");
  try {
    const steps = work();
    let next = steps.next();
    while (next.done !== true) next = steps.next(await step(next.value));
    progress.isCommitting = end === "commit";
    await control(end === "commit" ? "COMMIT" : "ROLLBACK");
    return next.value as Result;
  } catch (error) {
    // A process that has ended took its transaction with it.
    await control("ROLLBACK").catch(() => {});
    throw error;
  }
}

/** The process ended, or was killed, before it answered. */
function isCutOff(error: unknown): boolean {
  return error instanceof TimeoutError || (isSqliteError(error) && error.code === GONE);
}

function unknown(error: unknown): SallyportError {
  const hint = "The database went away while it was committing. Read the row again.";
  return new SallyportError("outcome_unknown", { hint }, error);
}

function fileOf(options: SqliteDatabaseOptions): string {
  const file = "file" in options ? options.file : options.handle.memory ? "" : options.handle.name;
  if (file !== "" && file !== ":memory:") return path.resolve(file);
  const hint =
    "Give the file of the database: queries run in a process of their own, which cannot see a database in memory.";
  throw new SallyportError("invalid_input", { what: "database", hint });
}

function notAQuery(): Refusal {
  return new Refusal(
    "not_allowed",
    "Only one query can be run here, beginning with SELECT, WITH or VALUES and changing nothing. Nothing was done. Use sql.update_row to change a row.",
  );
}

function asRefusal(error: unknown, detail: (message: string, code: string) => string): unknown {
  if (error instanceof TimeoutError) {
    return new Refusal(
      "timed_out",
      `It took longer than ${error.ms} ms and was ended. Nothing was changed. Ask for less at a time.`,
    );
  }
  if (!isSqliteError(error)) return error;
  const { code, message } = error;
  const busy = code.startsWith("SQLITE_BUSY") || code === GONE;
  const advice = busy ? "Try again later." : "Check names and values.";
  return new Refusal(
    busy ? "conflict" : "unusable",
    `The database refused it${detail(message, code)}. Nothing was changed. ${advice}`,
  );
}
