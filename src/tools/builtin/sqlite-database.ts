import { type ChildProcess, fork } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { SallyportError } from "../../model/errors.ts";
import { errorCodeOf } from "../../util/error-text.ts";
import { systemTimers, TimeoutError, type Timers } from "../../util/timers.ts";
import { type RefusalCode, ToolRefusal } from "./file-place.ts";
import type { SqlAnswer, SqlDatabase, SqlStatement, SqlValue } from "./sql-table.ts";

/** The part of better-sqlite3 that is used: the file name. */
interface SqliteHandle {
  readonly name: string;
  readonly memory: boolean;
}

type SqliteDatabaseOptions = {
  /** Appears in resources as `sql:name/table`. */
  readonly name: string;
  /** The time limit of one query or change; default 10 seconds. Then it is ended and nothing was changed. */
  readonly deadlineMs?: number;
  readonly timers?: Timers;
} & (
  | { readonly file: string }
  /** An open handle of better-sqlite3; only its file name is used. */
  | { readonly handle: SqliteHandle }
);

const DEADLINE_MS = 10_000;

/**
 * A SQLite database in a file. SQL runs in separate processes with their own connections: a query that does not end is
 * killed at its deadline and never blocks this process. Throws invalid_input for an in-memory database, which no other
 * process can open.
 */
export function sqliteDatabase(options: SqliteDatabaseOptions): SqlDatabase {
  const { name, deadlineMs = DEADLINE_MS, timers = systemTimers } = options;
  const processes = new SqliteProcesses({ file: fileOf(options), deadlineMs, timers });

  return {
    name,
    dialect: "sqlite",
    async read({ text, values }, maxRows) {
      // SQLite treats PRAGMA and ATTACH as reads, so the first word of a query is checked here.
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
    // A process that has ended rolled its transaction back.
    await control("ROLLBACK").catch(() => {});
    throw error;
  }
}

/** The process ended or was killed before it answered. */
function isCutOff(error: unknown): boolean {
  return error instanceof TimeoutError || (isSqliteError(error) && error.code === GONE);
}

function unknown(error: unknown): SallyportError {
  const hint = "The connection to the database was lost during the commit. Read the row again.";
  return new SallyportError("outcome_unknown", { hint }, error);
}

function fileOf(options: SqliteDatabaseOptions): string {
  const file = "file" in options ? options.file : options.handle.memory ? "" : options.handle.name;
  if (file !== "" && file !== ":memory:") return path.resolve(file);
  const hint =
    "Give the file of the database: queries run in a separate process, which cannot open an in-memory database.";
  throw new SallyportError("invalid_input", { what: "database", hint });
}

function notAQuery(): ToolRefusal {
  return new ToolRefusal(
    "not_allowed",
    "Only one query that starts with SELECT, WITH or VALUES and changes nothing is accepted. Nothing was done. Use sql.update_row to change a row.",
  );
}

function asRefusal(error: unknown, detail: (message: string, code: string) => string): unknown {
  if (error instanceof TimeoutError) {
    return new ToolRefusal(
      "timed_out",
      `It took longer than ${error.ms} ms and was ended. Nothing was changed. Ask for less at a time.`,
    );
  }
  if (!isSqliteError(error)) return error;
  const { code, message } = error;
  const busy = code.startsWith("SQLITE_BUSY") || code === GONE;
  const advice = busy ? "Try again later." : "Check names and values.";
  return new ToolRefusal(
    busy ? "conflict" : "unusable",
    `The database refused it${detail(message, code)}. Nothing was changed. ${advice}`,
  );
}

/** A request to the process that runs SQL, one at a time. */
export type SqliteOrder = {
  readonly text: string;
  readonly values: readonly SqlValue[];
} & (
  | { readonly kind: "read"; readonly most: number }
  | { readonly kind: "step" }
  /** BEGIN, COMMIT, ROLLBACK. */
  | { readonly kind: "control" }
);

export type SqliteReply = { readonly answer: SqlAnswer } | { readonly failure: SqliteFailure };

export interface SqliteFailure {
  /** Set when the tool refused, not the database. */
  readonly refused?: RefusalCode;
  /** SQLite's code; empty for other errors. */
  readonly code: string;
  readonly text: string;
}

/** Next to this file, as source and as built. */
const SQLITE_PROCESS = new URL(
  `./sqlite-process${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`,
  import.meta.url,
);

/**
 * Sends one request and waits for its answer. Throws SqliteError, ToolRefusal, or TimeoutError when the process was killed.
 */
type AskSqlite = (order: SqliteOrder) => Promise<SqlAnswer>;

/** The code for a process that ended before it answered. */
const GONE = "SQLITE_GONE";

/** An error of SQLite with its code. */
class SqliteError extends Error {
  override readonly name = "SqliteError";
  readonly code: string;

  constructor({ code, text }: SqliteFailure) {
    super(text);
    this.code = code;
  }
}

interface SqliteProcessesOptions {
  readonly file: string;
  /** The time limit of one piece of work, including the wait for a process. Then the process is killed. */
  readonly deadlineMs: number;
  readonly timers: Timers;
}

const MOST_PROCESSES = 4;
const MOST_WAITING = 64;
const IDLE_MS = 10_000;

/**
 * A few processes with their own connections to one database file. Each does one piece of work at a time. They start on
 * demand, end when idle for a while, and do not keep this process alive.
 */
class SqliteProcesses {
  readonly #options: SqliteProcessesOptions;
  readonly #idle: SqliteProcess[] = [];
  readonly #waiting = new Set<(process: SqliteProcess) => void>();
  #count = 0;

  constructor(options: SqliteProcessesOptions) {
    this.#options = options;
  }

  async use<Result>(work: (ask: AskSqlite) => Promise<Result>): Promise<Result> {
    const { deadlineMs, timers } = this.#options;
    let taken: SqliteProcess | undefined;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const stop = timers.after(deadlineMs, () => reject(new TimeoutError(deadlineMs)), HOLD);
    try {
      taken = await this.#take(late);
      const process = taken;
      return await Promise.race([work((order) => process.ask(order)), late]);
    } catch (error) {
      // Kill it: nothing else can interrupt a query.
      if (error instanceof TimeoutError) taken?.kill();
      throw error;
    } finally {
      stop();
      if (taken !== undefined) this.#giveBack(taken);
    }
  }

  async #take(late: Promise<never>): Promise<SqliteProcess> {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (idle.isAlive) return idle.wakeUp();
      this.#count -= 1;
    }
    if (this.#count < MOST_PROCESSES) {
      this.#count += 1;
      return new SqliteProcess(this.#options.file);
    }
    if (this.#waiting.size >= MOST_WAITING) {
      throw new ToolRefusal(
        "conflict",
        "Too many queries wait for this database. Try again later.",
      );
    }
    const { promise, resolve } = Promise.withResolvers<SqliteProcess>();
    this.#waiting.add(resolve);
    try {
      return await Promise.race([promise, late]);
    } finally {
      this.#waiting.delete(resolve);
    }
  }

  #giveBack(used: SqliteProcess): void {
    const [next] = this.#waiting;
    if (!used.isAlive && next === undefined) {
      this.#count -= 1;
      return;
    }
    const process = used.isAlive ? used : new SqliteProcess(this.#options.file);
    if (next !== undefined) {
      this.#waiting.delete(next);
      next(process);
      return;
    }
    this.#idle.push(process);
    process.rest(this.#options.timers, () => {
      const at = this.#idle.indexOf(process);
      if (at < 0) return;
      this.#idle.splice(at, 1);
      this.#count -= 1;
    });
  }
}

const HOLD = "keeps the process alive" as const;

/** One process and its current request. */
class SqliteProcess {
  readonly #child: ChildProcess;
  #settle: ((reply: SqliteReply | undefined) => void) | undefined;
  #stopResting = () => {};
  isAlive = true;

  constructor(file: string) {
    // Without an environment: the host's variables are not passed on.
    this.#child = fork(fileURLToPath(SQLITE_PROCESS), [file], {
      env: {},
      execArgv: [],
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    this.#child.on("message", (reply: SqliteReply) => this.#settle?.(reply));
    const ended = () => {
      this.isAlive = false;
      this.#settle?.(undefined);
    };
    this.#child.once("error", ended);
    this.#child.once("exit", ended);
    // While idle it must not keep this process alive.
    this.#child.unref();
    this.#child.channel?.unref();
  }

  async ask(order: SqliteOrder): Promise<SqlAnswer> {
    if (!this.isAlive) throw gone();
    const { promise, resolve } = Promise.withResolvers<SqliteReply | undefined>();
    this.#settle = resolve;
    this.#child.channel?.ref();
    this.#child.send(order, (error) => error !== null && resolve(undefined));
    const reply = await promise;
    this.#settle = undefined;
    this.#child.channel?.unref();
    if (reply === undefined) throw gone();
    if ("answer" in reply) return reply.answer;
    const { failure } = reply;
    if (failure.refused !== undefined) throw new ToolRefusal(failure.refused, failure.text);
    throw new SqliteError(failure);
  }

  wakeUp(): this {
    this.#stopResting();
    return this;
  }

  rest(timers: Timers, ended: () => void): void {
    this.#stopResting = timers.after(IDLE_MS, () => {
      ended();
      this.kill();
    });
  }

  kill(): void {
    this.isAlive = false;
    this.#child.kill("SIGKILL");
  }
}

function gone(): SqliteError {
  return new SqliteError({
    code: GONE,
    text: "the process that runs queries has ended; try again",
  });
}

function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof SqliteError && errorCodeOf(error) !== "";
}

const QUERY_WORDS = ["SELECT", "WITH", "VALUES"];
const SPACES = " \t\n\v\f\r";

/**
 * True when a statement starts with SELECT, WITH or VALUES after spaces and comments. Scans the text once: a regular
 * expression that skips spaces and comments in any order needs a nested quantifier and takes exponential time.
 */
function startsLikeQuery(sql: string): boolean {
  const start = afterComments(sql);
  return QUERY_WORDS.some((word) => {
    const end = start + word.length;
    return sql.slice(start, end).toUpperCase() === word && !isWord(sql.charAt(end));
  });
}

/** The start of the first word. An unterminated comment extends to the end of the text. */
function afterComments(sql: string): number {
  let at = 0;
  for (;;) {
    if (at < sql.length && SPACES.includes(sql.charAt(at))) at += 1;
    else if (sql.startsWith("--", at)) at = endOf(sql, "\n", at);
    else if (sql.startsWith("/*", at)) at = endOf(sql, "*/", at + 2);
    else return at;
  }
}

function endOf(sql: string, mark: string, from: number): number {
  const found = sql.indexOf(mark, from);
  return found < 0 ? sql.length : found + mark.length;
}

function isWord(character: string): boolean {
  return /^\w$/.test(character);
}
