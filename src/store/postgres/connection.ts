import { SallyportError } from "../../model/errors.ts";

/** The part of `pg` that is used, as a structural type: any pool that behaves like it will do. */
export interface PgPool {
  connect(): Promise<PgClient>;
  on?(event: "error", listener: (error: Error) => void): unknown;
  query<R>(query: PgQuery): Promise<{ rows: R[] }>;
}

export interface PgClient {
  query<R>(query: PgQuery): Promise<{ rows: R[] }>;
  release(destroy?: boolean): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "notification", listener: () => void): unknown;
  off(event: "error", listener: (error: Error) => void): unknown;
  /** As `pg` has it; without it everything works, with more packets. */
  readonly connection?: { readonly stream?: { cork?(): void; uncork?(): void } };
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

/** Classes of SQLSTATE that speak about the data of one change, not about the server. */
const DATA_FAULTS = ["22", "23"];
/** Serialization failure and deadlock: the server picked us as the one to try again. */
const TRY_AGAIN = ["40001", "40P01"];

/** The server's own code; empty for errors of the line, whose codes (EPIPE) may look alike but come without a severity. */
export function sqlState(error: unknown): string {
  if (!(error instanceof Error) || !("code" in error) || !("severity" in error)) return "";
  return typeof error.code === "string" ? error.code : "";
}

export function isTryAgain(error: unknown): boolean {
  return TRY_AGAIN.includes(sqlState(error));
}

/** True when the server answered, so that we know this transaction is over; false when the line went dead. */
export function isServerAnswer(error: unknown): boolean {
  const state = sqlState(error);
  return state !== "" && !state.startsWith("57P") && !state.startsWith("08");
}

/** The line was cut while it was in use, which says nothing about whether the server can be reached over another. */
export function isCutLine(error: unknown): boolean {
  const state = sqlState(error);
  if (state !== "" || !(error instanceof Error)) return CUT.includes(state);
  const code = "code" in error ? String(error.code) : error.message;
  return CUT.includes(code);
}
const CUT = ["57P01", "57P02", "ECONNRESET", "EPIPE", "Connection terminated unexpectedly"];

export function asStoreError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof SallyportError) return error;
  const state = sqlState(error);
  if (DATA_FAULTS.some((prefix) => state.startsWith(prefix))) {
    const hint = "The database refused the values; nothing was written.";
    return new SallyportError("invalid_input", { sqlstate: state, hint }, error);
  }
  const hint =
    "Check that PostgreSQL runs, that its address is right and that it takes connections.";
  return new SallyportError("store_unavailable", { reason: state || error.message, hint }, error);
}
