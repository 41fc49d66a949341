import { SallyportError } from "../../model/errors.ts";
import { InvariantError } from "../../util/error-text.ts";
import { TimeoutError, type Timers } from "../../util/timers.ts";

/** The part of `pg` that is used, as a structural type: any pool that behaves like it will do. */
export interface PgPool {
  connect(): Promise<PgClient>;
  on?(event: "error", listener: (error: Error) => void): unknown;
  on?(event: "connect", listener: (client: Pick<PgClient, "on">) => void): unknown;
  query<R>(query: PgQuery): Promise<{ rows: R[] }>;
  /** As `pg` has it; a pool too small to work with is refused. */
  readonly options?: { readonly max?: number };
}

export interface PgClient {
  query<R>(query: PgQuery): Promise<{ rows: R[] }>;
  release(destroy?: boolean): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "notification", listener: () => void): unknown;
  off(event: "error", listener: (error: Error) => void): unknown;
  /** As `pg` has it; without it everything works, with more packets, and a silent line stays open on the server. */
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
 * What is asked for inside, without waiting in between, leaves in one packet: each packet of its own would wake the server
 * up once more, and on a pipelined connection they share one round trip.
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

/** Our integers are times and counters, far below 2^53, so numbers are safe and what callers expect. */
export const TYPES: TypeParsers = {
  getTypeParser: (oid) => {
    if (oid === BIGINT) return Number;
    if (oid === BYTEA) return (text) => new Uint8Array(Buffer.from(text.slice(2), "hex"));
    return (text) => text;
  },
};

/** Classes of SQLSTATE that speak about the values of one change: data, constraints, sizes. */
const DATA_FAULTS = ["22", "23", "54"];
/** Classes that speak about the server and not about what was asked: connection, resources, operator, system. */
const SERVER_FAULTS = ["08", "53", "57", "58"];
/** Serialization failure and deadlock: the server picked us as the one to try again. */
const TRY_AGAIN = ["40001", "40P01"];
/**
 * The server answered, and this connection will never answer otherwise: the plans it keeps do not fit the tables any more
 * (0A000), its prepared statements are gone (26000), or it leads to a server that only reads (25006). Another one may.
 */
const SPOILED_LINE = ["0A000", "26000", "25006"];
const LOCK_TIMEOUT = "55P03";

/** The server's own code; empty for errors of the line, whose codes (EPIPE) may look alike but come without a severity. */
export function sqlState(error: unknown): string {
  if (!(error instanceof Error) || !("code" in error) || !("severity" in error)) return "";
  return typeof error.code === "string" ? error.code : "";
}

export function isTryAgain(error: unknown): boolean {
  return TRY_AGAIN.includes(sqlState(error));
}

/** Somebody held a row for longer than we wait for one. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === LOCK_TIMEOUT;
}

/** True when the server answered, so that we know this transaction is over; false when the line is dead or must be dropped. */
export function isServerAnswer(error: unknown): boolean {
  const state = sqlState(error);
  if (state === "" || state.startsWith("57P") || state.startsWith("08")) return false;
  return !SPOILED_LINE.includes(state);
}

/** The line was cut or is spoiled, which says nothing about whether the server can be reached over another. */
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

/** Thrown by our own code about what it was given (a text too long to be made): the same again would fail again. */
export function isOurs(error: unknown): boolean {
  return (
    error instanceof RangeError || error instanceof TypeError || error instanceof InvariantError
  );
}

/** Whether it may be about one change of the group: what the server says to a statement, and what our own code says. */
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
      "Somebody holds a row of this tenant: look for an open or prepared transaction in pg_stat_activity and pg_prepared_xacts.";
    return new SallyportError("store_busy", { sqlstate: state, hint }, error);
  }
  const hint = HINTS[state] ?? HINTS[state.slice(0, 2)] ?? hintOf(error);
  return new SallyportError("store_unavailable", { reason: state || error.message, hint }, error);
}

const HINTS: Readonly<Record<string, string>> = {
  "42501":
    "The role lacks a right. Migrate with the owner of the schema, then grant this role what docs/guide/postgres.md lists.",
  "25006":
    "The server only reads: it is a standby, or it was set so. Lead the address to the primary, or open the store with readOnly.",
  "42": "The tables are not as this version expects them. Run sallyport store migrate with the owner of the schema.",
  "53": "The server is out of connections, memory or disk.",
  "57": "The server stops or starts, or an operator ended the request. Ask again in a moment.",
};

function hintOf(error: Error): string {
  if (error instanceof TimeoutError) {
    return "PostgreSQL did not answer in time. Check the network on the way to it, and its load.";
  }
  return "Check that PostgreSQL runs, that its address is right and that it takes connections.";
}

export interface LinesOptions {
  readonly pool: PgPool;
  readonly timers: Timers;
}

/** How long a connection may take to say goodbye before its socket is closed. */
const GOODBYE_MS = 1_000;

/**
 * The pool, with an end to all waiting. A network that swallows packets tells nobody: without a deadline of our own a
 * request would stay open for as long as TCP tries, which is a quarter of an hour and more.
 */
export class Lines {
  readonly #options: LinesOptions;

  constructor(options: LinesOptions) {
    this.#options = options;
    // A connection may break in the very packet that opens it, before its user could listen. Its queries report it anyway.
    options.pool.on?.("connect", (client) => void client.on("error", ignore));
  }

  /** A connection; rejects with TimeoutError. One that comes too late goes back to the pool. */
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
   * What `work` gives on this connection. When it does not end in time the socket is closed, so that everything that was
   * asked over it fails, and the promise rejects with TimeoutError. The caller drops the connection.
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

  /** What `work` gives on a connection of its own, which is not used again after it failed to answer. All of it in `ms`. */
  async using<Result>(ms: number, work: (client: PgClient) => Promise<Result>): Promise<Result> {
    const { timers } = this.#options;
    const began = timers.elapsedMs();
    const client = await this.connect(ms);
    const leftMs = began + ms - timers.elapsedMs();
    // Without a listener a line that breaks now would end the process; the queries report it anyway.
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

  /** Gives a connection up for good. */
  drop(client: PgClient): void {
    client.release(true);
    const stream = client.connection?.stream;
    if (stream?.destroy === undefined) return;
    this.#options.timers.after(GOODBYE_MS, () => stream.destroy?.());
  }
}

function ignore(): void {}
