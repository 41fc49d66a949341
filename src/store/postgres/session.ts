import { SallyportError } from "../../model/errors.ts";
import { stopwatch } from "../../util/clock.ts";
import type { Timers } from "../../util/timers.ts";
import type { ChangeResult } from "../engine.ts";
import type { Waiting } from "../group-commit.ts";
import { isServerAnswer, isTryAgain, type PgClient, type PgPool, TYPES } from "./connection.ts";
import { GroupSpoiled } from "./members.ts";
import type { Ends, Writer, Written } from "./writer.ts";

export interface SessionOptions {
  readonly pool: PgPool;
  readonly schema: string;
  readonly writer: Writer;
  readonly timers: Timers;
  readonly patienceMs: number;
}

const MAX_ATTEMPTS = 1_000;

/**
 * A process that is stopped while it has the tenant's turn holds up everybody else. After this long the server takes the
 * turn away from it; when it wakes up it finds its line dead, learns that nothing was written, and tries again.
 */
const TURN_MS = 2_000;

/**
 * The one connection this process writes through, and what to do when it breaks. Few connections with large groups beat
 * many with small ones, because all writers of a tenant take turns anyway.
 */
export class WriteSession {
  readonly #options: SessionOptions;
  #client: PgClient | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /**
   * Commits the group and answers for each member, trying again while that is safe. Throws GroupSpoiled, a data fault of
   * one member (nothing was written), store_unavailable (nothing was written) or commit_unknown.
   */
  async commit(group: readonly Waiting[]): Promise<readonly ChangeResult[]> {
    const { patienceMs, timers } = this.#options;
    const deadline = stopwatch.now() + patienceMs;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#attempt(group, deadline);
      } catch (error) {
        const again = isTryAgain(error) || !(isServerAnswer(error) || isFinal(error));
        if (!again || attempt >= MAX_ATTEMPTS || stopwatch.now() >= deadline) throw error;
        await timers.sleep(Math.min(2 ** attempt, 100));
      }
    }
  }

  async #attempt(group: readonly Waiting[], deadline: number): Promise<readonly ChangeResult[]> {
    const { writer } = this.#options;
    const client = await this.#connected();
    let written: Written;
    try {
      written = await writer.write(client, group);
    } catch (error) {
      await this.#abandon(client, error);
      throw error;
    }
    const { results, ends } = written;
    const failure = (await written.committing).find((part) => part.status === "rejected");
    if (failure !== undefined) {
      await this.#abandon(client, failure.reason);
      if (isServerAnswer(failure.reason)) throw failure.reason;
      if (!(await this.#didCommit(ends, deadline))) throw failure.reason;
    }
    writer.committed(ends);
    return results;
  }

  /**
   * The line went dead during COMMIT. The lock on the chain tells: whoever gets it knows that the lost transaction is
   * over, and then its last entry is either in the trail or never will be.
   */
  async #didCommit(ends: Ends, deadline: number): Promise<boolean> {
    const { schema, timers } = this.#options;
    const [end] = ends.values();
    // All were refused: there was nothing to write, so nothing can be missing.
    if (end === undefined) return true;
    for (;;) {
      try {
        const client = await this.#connected();
        await client.query({ text: "BEGIN" });
        await client.query({
          text: `SELECT 1 FROM ${schema}.chains WHERE tenant = $1 FOR UPDATE`,
          values: [end.tenant],
        });
        const { rows } = await client.query<{ hash: string }>({
          text: `SELECT hash FROM ${schema}.audit WHERE tenant = $1 AND seq = $2`,
          values: [end.tenant, end.seq],
          types: TYPES,
        });
        await client.query({ text: "ROLLBACK" });
        return rows[0]?.hash === end.hash;
      } catch (cause) {
        this.#drop();
        if (stopwatch.now() >= deadline) {
          const hint =
            "Read the record again when the database is back, before you repeat anything.";
          throw new SallyportError("commit_unknown", { hint }, cause);
        }
        await timers.sleep(50);
      }
    }
  }

  async #connected(): Promise<PgClient> {
    if (this.#client !== undefined) return this.#client;
    const client = await this.#options.pool.connect();
    // Without a listener an idle connection that breaks would end the process; the next query reports it anyway.
    client.on("error", () => {
      if (this.#client === client) this.#drop();
    });
    // The batches join a few parameter rows to a table by its key. Before the first ANALYZE the planner may think the
    // table empty and read all of it instead, which costs more with every row.
    try {
      await client.query({
        text: `SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; SET idle_in_transaction_session_timeout = ${TURN_MS}`,
      });
    } catch (error) {
      client.release(true);
      throw error;
    }
    this.#client = client;
    return client;
  }

  async #abandon(client: PgClient, error: unknown): Promise<void> {
    if (!isServerAnswer(error) && !isFinal(error)) return this.#drop();
    try {
      await client.query({ text: "ROLLBACK" });
    } catch {
      // Dropping the connection rolls back as well, and the first error is the one to report.
      this.#drop();
    }
  }

  #drop(): void {
    const client = this.#client;
    this.#client = undefined;
    client?.release(true);
  }

  close(): void {
    this.#drop();
  }
}

function isFinal(error: unknown): boolean {
  return error instanceof GroupSpoiled || error instanceof SallyportError;
}
