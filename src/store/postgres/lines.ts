import { TimeoutError, type Timers } from "../../util/timers.ts";
import { isServerAnswer, type PgClient, type PgPool, type PgQuery } from "./connection.ts";

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

  /** What `work` gives on a connection of its own, which is not used again after it failed to answer. */
  async using<Result>(ms: number, work: (client: PgClient) => Promise<Result>): Promise<Result> {
    const client = await this.connect(ms);
    // Without a listener a line that breaks now would end the process; the queries report it anyway.
    client.on("error", ignore);
    try {
      const result = await this.within(client, ms, () => work(client));
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
