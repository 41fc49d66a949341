import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { TimeoutError, type Timers } from "../../util/timers.ts";
import { errorCodeOf, Refusal } from "./refusal.ts";
import type { SqlAnswer } from "./sql-database.ts";
import { SQLITE_PROCESS } from "./sqlite-watchdog-place.ts";
import type { SqliteFailure, SqliteOrder, SqliteReply } from "./sqlite-wire.ts";

/** Runs one order and waits for its answer. Throws SqliteError, Refusal, or TimeoutError when the process was killed. */
export type AskSqlite = (order: SqliteOrder) => Promise<SqlAnswer>;

/** The code for a process that ended before it answered. */
export const GONE = "SQLITE_GONE";

/** What SQLite refused, with its code. */
export class SqliteError extends Error {
  override readonly name = "SqliteError";
  readonly code: string;

  constructor({ code, text }: SqliteFailure) {
    super(text);
    this.code = code;
  }
}

export interface SqliteProcessesOptions {
  readonly file: string;
  /** How long one piece of work may take, waiting for a process included. Then the process is killed. */
  readonly deadlineMs: number;
  readonly timers: Timers;
}

const MOST_PROCESSES = 4;
const MOST_WAITING = 64;
const IDLE_MS = 10_000;

/**
 * A few processes with connections of their own to one database file. Each does one piece of work at a time. They are
 * started when they are needed, ended when nobody has needed them for a while, and do not keep this process alive.
 */
export class SqliteProcesses {
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
      // Whatever it is doing, it ends: nothing else can interrupt a query.
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
      throw new Refusal("conflict", "Too many queries wait for this database. Try again later.");
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

/** One process, and the one order that it works on. */
class SqliteProcess {
  readonly #child: ChildProcess;
  #settle: ((reply: SqliteReply | undefined) => void) | undefined;
  #stopResting = () => {};
  isAlive = true;

  constructor(file: string) {
    // Without an environment: what the host keeps there is none of its business.
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
    // While nobody waits for it, it must not keep this process alive.
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
    if (failure.refused !== undefined) throw new Refusal(failure.refused, failure.text);
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

export function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof SqliteError && errorCodeOf(error) !== "";
}
