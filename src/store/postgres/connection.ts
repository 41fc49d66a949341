import { SallyportError } from "../../model/errors.ts";
import { InvariantError } from "../../util/error-text.ts";
import { TimeoutError, type Timers } from "../../util/timers.ts";

// Connections with deadlines, and what the errors of PostgreSQL and of the network mean.

/** The part of `pg` that is used, as a structural type: any pool that behaves like it will do. */
export interface PgPool {
  connect(): Promise<PgClient>;
  on?(event: "error", listener: (error: Error) => void): unknown;
  on?(event: "connect", listener: (client: Pick<PgClient, "on">) => void): unknown;
  query<R>(query: PgQuery): Promise<{ rows: R[] }>;
  /** As in `pg`; a pool that is too small is refused. */
  readonly options?: { readonly max?: number };
}

export interface PgClient {
  query<R>(query: PgQuery): Promise<{ rows: R[] }>;
  release(destroy?: boolean): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "notification", listener: () => void): unknown;
  off(event: "error", listener: (error: Error) => void): unknown;
  /** As in `pg`. Without it everything works, with more packets, and a silent connection stays open on the server. */
  readonly connection?: {
    readonly stream?: { cork?(): void; uncork?(): void; destroy?(): unknown };
  };
}

export interface PgQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  /** A name makes the server parse and plan the text once per connection. */
  readonly name?: string;
  readonly types?: TypeParsers;
}

interface TypeParsers {
  getTypeParser(oid: number, format?: string): (text: string) => unknown;
}

/**
 * Sends the queries that `send` starts as one packet: each further packet would wake the server once more. On a pipelined
 * connection they share one round trip.
 */
export function sentTogether<Sent>(client: PgClient, send: () => Sent): Sent {
  const stream = client.connection?.stream;
  stream?.cork?.();
  try {
    return send();
  } finally {
    stream?.uncork?.();
  }
}

const BIGINT = 20;
const BYTEA = 17;

/** Our integers are times and counters, far below 2^53, so numbers are safe. */
export const TYPES: TypeParsers = {
  getTypeParser: (oid) => {
    if (oid === BIGINT) return Number;
    if (oid === BYTEA) return (text) => new Uint8Array(Buffer.from(text.slice(2), "hex"));
    return (text) => text;
  },
};

/** Classes of SQLSTATE that are about the values of one change: data, constraints, sizes. */
const DATA_FAULTS = ["22", "23", "54"];
/** Classes that are about the server and not about the statement: connection, resources, operator, system. */
const SERVER_FAULTS = ["08", "53", "57", "58"];
/** Serialization failure and deadlock: the server chose this transaction to be retried. */
const TRY_AGAIN = ["40001", "40P01"];
/**
 * The server answered, and will always answer so on this connection: its cached plans no longer fit the tables (0A000), its
 * prepared statements are gone (26000), or it leads to a read-only server (25006). Another connection may work.
 */
const SPOILED_LINE = ["0A000", "26000", "25006"];
const LOCK_TIMEOUT = "55P03";

/** The server's own code; empty for errors of the network, whose codes (EPIPE) look alike but come without a severity. */
export function sqlState(error: unknown): string {
  if (!(error instanceof Error) || !("code" in error) || !("severity" in error)) return "";
  return typeof error.code === "string" ? error.code : "";
}

export function isTryAgain(error: unknown): boolean {
  return TRY_AGAIN.includes(sqlState(error));
}

/** A row was locked for longer than we wait for one. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === LOCK_TIMEOUT;
}

/** True when the server answered, so the transaction has ended; false when the connection is dead or must be dropped. */
export function isServerAnswer(error: unknown): boolean {
  const state = sqlState(error);
  if (state === "" || state.startsWith("57P") || state.startsWith("08")) return false;
  return !SPOILED_LINE.includes(state);
}

/**
 * The server has certainly rolled back a statement that commits by itself. An error that is worse than ERROR may come after
 * the commit was written. The severity may be in another language; our own refusals and lock timeouts come from inside.
 */
export function isRolledBack(error: unknown): boolean {
  const state = sqlState(error);
  if (state === "") return false;
  if (state === LOCK_TIMEOUT || state.startsWith(OWN)) return true;
  return error instanceof Error && "severity" in error && error.severity === "ERROR";
}

/** The class of the errors that our own function raises. */
const OWN = "SP";

/** The connection was cut or is spoiled; the server may be reachable over another one. */
export function isCutLine(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== "" || !(error instanceof Error)) return CUT.includes(state);
  const code = "code" in error ? String(error.code) : error.message;
  return CUT.includes(code);
}
const CUT = [
  ...["57P01", "57P02", "ECONNRESET", "EPIPE", "Connection terminated unexpectedly"],
  ...SPOILED_LINE,
];

/** Thrown by our own code about its input (a text that is too long, for example): a retry would fail again. */
export function isOurs(error: unknown): boolean {
  return (
    error instanceof RangeError || error instanceof TypeError || error instanceof InvariantError
  );
}

/** Whether it may be about one change of the group: errors of the server about a statement, and of our own code. */
export function isAboutTheGroup(error: unknown): boolean {
  if (error instanceof SallyportError) {
    return error.code !== "store_unavailable" && error.code !== "commit_unknown";
  }
  const state = sqlState(error);
  if (state === "") return isOurs(error);
  return !SERVER_FAULTS.some((prefix) => state.startsWith(prefix)) && isServerAnswer(error);
}

export function asStoreError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof SallyportError) return error;
  const state = sqlState(error);
  if (DATA_FAULTS.some((prefix) => state.startsWith(prefix))) {
    const hint = "The database refused the values; nothing was written.";
    return new SallyportError("invalid_input", { sqlstate: state, hint }, error);
  }
  if (state === LOCK_TIMEOUT) {
    const hint =
      "A row of this tenant is locked: look for an open or prepared transaction in pg_stat_activity and pg_prepared_xacts.";
    return new SallyportError("store_busy", { sqlstate: state, hint }, error);
  }
  const hint = HINTS[state] ?? HINTS[state.slice(0, 2)] ?? hintOf(error);
  return new SallyportError("store_unavailable", { reason: state || error.message, hint }, error);
}

const HINTS: Readonly<Record<string, string>> = {
  "42501":
    "The role lacks a privilege. Migrate with the owner of the schema, then grant this role what docs/guide/postgres.md lists.",
  "25006":
    "The server is read-only: it is a standby, or it is configured so. Connect to the primary, or open the store with readOnly.",
  "42": "The tables are not as this version expects them. Run sallyport store migrate with the owner of the schema.",
  "53": "The server is out of connections, memory or disk.",
  "57": "The server is stopping or starting, or an operator cancelled the request. Try again in a moment.",
};

function hintOf(error: Error): string {
  if (error instanceof TimeoutError) {
    return "PostgreSQL did not answer in time. Check the network on the way to it, and its load.";
  }
  return "Check that PostgreSQL runs, that its address is right and that it accepts connections.";
}

export interface LinesOptions {
  readonly pool: PgPool;
  readonly timers: Timers;
}

/** How long a connection may take to end before its socket is closed. */
const GOODBYE_MS = 1_000;

/**
 * The pool, with a deadline for every wait. A network that drops packets reports nothing: without a deadline of our own a
 * request would stay open for as long as TCP retries, which is a quarter of an hour and more.
 */
export class Lines {
  readonly #options: LinesOptions;

  constructor(options: LinesOptions) {
    this.#options = options;
    // A connection may break while it is opened, before its user could listen. Its queries report the failure.
    options.pool.on?.("connect", (client) => void client.on("error", ignore));
  }

  /** A connection from the pool; rejects with TimeoutError. One that arrives late is returned to the pool. */
  connect(ms: number): Promise<PgClient> {
    const { pool, timers } = this.#options;
    return new Promise((resolve, reject) => {
      let isLate = false;
      const cancel = timers.after(
        ms,
        () => {
          isLate = true;
          reject(new TimeoutError(ms));
        },
        "keeps the process alive",
      );
      pool.connect().then(
        (client) => {
          cancel();
          if (isLate) client.release();
          else resolve(client);
        },
        (error: unknown) => {
          cancel();
          reject(error);
        },
      );
    });
  }

  /**
   * Runs `work` on this connection. When it does not end in time the socket is closed, so that every query on it fails, and
   * the promise rejects with TimeoutError. The caller drops the connection.
   */
  within<Result>(client: PgClient, ms: number, work: () => Promise<Result>): Promise<Result> {
    const { timers } = this.#options;
    return new Promise((resolve, reject) => {
      const cancel = timers.after(
        Math.max(ms, 1),
        () => {
          reject(new TimeoutError(ms));
          client.connection?.stream?.destroy?.();
        },
        "keeps the process alive",
      );
      work().finally(cancel).then(resolve, reject);
    });
  }

  /** One query on a connection of its own. */
  async query<R>(query: PgQuery, ms: number): Promise<{ rows: R[] }> {
    return this.using(ms, (client) => client.query<R>(query));
  }

  /** Runs `work` on a connection of its own, all within `ms`. A connection that did not answer is dropped. */
  async using<Result>(ms: number, work: (client: PgClient) => Promise<Result>): Promise<Result> {
    const { timers } = this.#options;
    const began = timers.elapsedMs();
    const client = await this.connect(ms);
    const leftMs = began + ms - timers.elapsedMs();
    // Without a listener a connection that breaks now would end the process. Its queries report the failure.
    client.on("error", ignore);
    try {
      const result = await this.within(client, leftMs, () => work(client));
      client.off("error", ignore);
      client.release();
      return result;
    } catch (error) {
      if (isServerAnswer(error)) {
        client.off("error", ignore);
        client.release();
      } else {
        this.drop(client);
      }
      throw error;
    }
  }

  /** Closes a connection instead of returning it to the pool. */
  drop(client: PgClient): void {
    client.release(true);
    const stream = client.connection?.stream;
    if (stream?.destroy === undefined) return;
    this.#options.timers.after(GOODBYE_MS, () => stream.destroy?.());
  }
}

function ignore(): void {}
