import { SallyportError } from "../../model/errors.ts";
import type { Timers } from "../../util/timers.ts";
import type { ChangeResult } from "../engine.ts";
import type { Waiting } from "../group-commit.ts";
import {
  isAboutTheGroup,
  isLockTimeout,
  isOurs,
  isRolledBack,
  isServerAnswer,
  isTryAgain,
  type Lines,
  type PgClient,
  sqlState,
  TYPES,
} from "./connection.ts";
import type { HotAnswer, HotCall, HotPath } from "./hot.ts";
import {
  BEGIN,
  ClockRefused,
  type Ends,
  GroupSpoiled,
  HeadLost,
  type Writer,
  type Written,
} from "./writer.ts";

export interface SessionOptions {
  readonly lines: Lines;
  readonly schema: string;
  readonly writer: Pick<Writer, "write" | "committed">;
  readonly hot?: Pick<HotPath, "prepare"> | undefined;
  readonly timers: Timers;
  readonly patienceMs: number;
}

const MAX_ATTEMPTS = 1_000;

/**
 * A process that is suspended while it holds a tenant's lock blocks all other writers. After this long the server ends its
 * transaction; when the process wakes up, its connection is dead, it learns that nothing was written, and it tries again.
 */
const TURN_MS = 2_000;

/** How long a group waits for a locked row, before the tenant of that row goes to the slow lane. */
export function lockMsOf(patienceMs: number): number {
  return Math.ceil(Math.min(1_000, patienceMs / 4));
}
const ROLLBACK_MS = 1_000;

/** No such function, or no right to call it. */
const NOT_THERE = ["42883", "42501"];

/** The share of the remaining time that one attempt gets; the rest is for finding out whether it was committed. */
const ATTEMPT_SHARE = 0.7;
const LEAST_MS = 50;

/**
 * One connection to write through, and what to do when it breaks. Few connections with large groups are faster than many with
 * small ones, because all writers of a tenant take turns anyway.
 */
export class WriteSession {
  readonly #options: SessionOptions;
  #client: PgClient | undefined;
  /** The server has no such function, or does not let us call it: not asked again on this connection. */
  #withoutHot: PgClient | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /**
   * Commits the group and returns each member's result. Retries while that is safe and `deadline` (by the stopwatch) has not
   * passed. Throws GroupSpoiled, ClockRefused, HeadLost, the server's or our own error about the group (nothing was
   * written), store_unavailable (nothing was written) or commit_unknown.
   */
  async commit(group: readonly Waiting[], deadline: number): Promise<readonly ChangeResult[]> {
    const { timers } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#attempt(group, deadline);
      } catch (error) {
        const again = isTryAgain(error) || !(isServerAnswer(error) || isFinal(error));
        if (!again || attempt >= MAX_ATTEMPTS || timers.elapsedMs() >= deadline) throw error;
        await timers.sleep(Math.min(2 ** attempt, 100));
      }
    }
  }

  /** Which of these tenants' chains another connection has locked at this moment. */
  async heldOf(tenants: readonly string[], deadline: number): Promise<ReadonlySet<string>> {
    const { lines, schema } = this.#options;
    const client = await this.#connected(deadline);
    const held = `SELECT tenant FROM ${schema}.chains WHERE tenant = ANY($1) EXCEPT SELECT tenant FROM (SELECT tenant FROM ${schema}.chains WHERE tenant = ANY($1) FOR UPDATE SKIP LOCKED) AS free`;
    try {
      return await lines.within(client, this.#leftUntil(deadline), async () => {
        const asked = client.query<{ tenant: string }>({ text: held, values: [tenants] });
        return new Set((await asked).rows.map(({ tenant }) => tenant));
      });
    } catch (error) {
      if (!isServerAnswer(error)) this.#drop();
      throw error;
    }
  }

  async #attempt(group: readonly Waiting[], deadline: number): Promise<readonly ChangeResult[]> {
    const { lines, writer, timers, patienceMs } = this.#options;
    const client = await this.#connected(deadline);
    // Long enough for the server to report a locked row.
    const least = lockMsOf(patienceMs) + 10 * LEAST_MS;
    const ms = Math.max(ATTEMPT_SHARE * (deadline - timers.elapsedMs()), least);
    const call = client === this.#withoutHot ? undefined : this.#options.hot?.prepare(group);
    const answer = call && (await this.#hot(client, call, ms, deadline));
    if (answer !== undefined) {
      writer.committed(answer.ends);
      return answer.results;
    }
    const sent: { written?: Written } = {};
    let failure: { readonly reason: unknown } | undefined;
    try {
      failure = await lines.within(client, ms, async () => {
        sent.written = await writer.write(client, group);
        return failureOf(await sent.written.committing);
      });
    } catch (error) {
      if (sent.written === undefined) {
        // COMMIT was not sent.
        await this.#abandon(client, error);
        throw error;
      }
      failure = { reason: error };
    }
    const { results, ends, committing } = sent.written as Written;
    if (failure !== undefined) {
      await this.#abandon(client, failure.reason);
      const isRolledBack = isServerAnswer(failure.reason) && (await wasAnswered(committing));
      if (isRolledBack || !(await this.#didCommit(ends, deadline))) throw failure.reason;
    }
    writer.committed(ends);
    return results;
  }

  /** One statement that commits by itself; undefined when nothing was written and the general path has to look. */
  async #hot(
    client: PgClient,
    call: HotCall,
    ms: number,
    deadline: number,
  ): Promise<HotAnswer | undefined> {
    let row: unknown;
    try {
      const asked = () => this.#options.lines.within(client, ms, () => client.query(call.query));
      [row] = (await asked()).rows;
    } catch (error) {
      if (!isRolledBack(error)) {
        this.#drop();
        const found = await this.#lookUp(call, deadline);
        if (found === undefined) throw error;
        return found;
      }
      if (NOT_THERE.includes(sqlState(error))) this.#withoutHot = client;
      const isForAll = !isAboutTheGroup(error) || isTryAgain(error) || isLockTimeout(error);
      if (!isForAll) return undefined;
      if (!isServerAnswer(error)) this.#drop();
      throw error;
    }
    return call.answered(row);
  }

  /** After a lost answer: undefined when it was not written, and never will be. Throws commit_unknown. */
  async #lookUp(call: HotCall, deadline: number): Promise<HotAnswer | undefined> {
    const found = await this.#inTransaction(deadline, (client) => call.found(client));
    if (found !== "changed since") return found;
    const hint = "It was written, and changed again before it could be looked up: read the record.";
    throw new SallyportError("commit_unknown", { hint });
  }

  /**
   * COMMIT failed, or its answer was lost: whatever the reason, it may have been written. The lock on the chain decides:
   * once it is ours, the lost transaction has ended, and its last entry is either in the trail or never will be. Committing
   * the lock waits for whatever a commit waits for, a synchronous standby for example, so that an entry which only this
   * server has does not count as written.
   */
  async #didCommit(ends: Ends, deadline: number): Promise<boolean> {
    const { schema } = this.#options;
    const [end] = ends.values();
    // All changes were refused: nothing was to be written, so nothing can be missing.
    if (end === undefined) return true;
    return this.#inTransaction(deadline, async (client) => {
      // Waits for the lost transaction also where it is the one that created the chain, whose row is invisible to others.
      await client.query({
        text: `INSERT INTO ${schema}.chains (tenant) VALUES ($1) ON CONFLICT DO NOTHING`,
        values: [end.tenant],
      });
      await client.query({
        text: `SELECT 1 FROM ${schema}.chains WHERE tenant = $1 FOR UPDATE`,
        values: [end.tenant],
      });
      const { rows } = await client.query<{ hash: string }>({
        text: `SELECT encode(head, 'hex') AS hash FROM ${schema}.audit_blocks WHERE tenant = $1 AND last = $2`,
        values: [end.tenant, end.seq],
        types: TYPES,
      });
      return rows[0]?.hash === end.hash;
    });
  }

  /** Until it is committed, over as many connections as that takes. Throws commit_unknown when there is no time left. */
  async #inTransaction<Found>(
    deadline: number,
    look: (client: PgClient) => Promise<Found>,
  ): Promise<Found> {
    const { lines, timers } = this.#options;
    for (;;) {
      try {
        const client = await this.#connected(deadline);
        return await lines.within(client, this.#leftUntil(deadline), async () => {
          await client.query({ text: BEGIN });
          const found = await look(client);
          await client.query({ text: "COMMIT" });
          return found;
        });
      } catch (cause) {
        this.#drop();
        if (timers.elapsedMs() >= deadline) {
          const hint =
            "Read the record again when the database is back, before you repeat anything.";
          throw new SallyportError("commit_unknown", { hint }, cause);
        }
        await timers.sleep(50);
      }
    }
  }

  async #connected(deadline: number): Promise<PgClient> {
    if (this.#client !== undefined) return this.#client;
    const { lines, patienceMs } = this.#options;
    const client = await lines.connect(this.#leftUntil(deadline));
    // Without a listener an idle connection that breaks would end the process. The next query reports the failure.
    client.on("error", () => {
      if (this.#client === client) this.#drop();
    });
    try {
      const text = settings(patienceMs);
      await lines.within(client, this.#leftUntil(deadline), () => client.query({ text }));
    } catch (error) {
      lines.drop(client);
      throw error;
    }
    this.#client = client;
    return client;
  }

  async #abandon(client: PgClient, error: unknown): Promise<void> {
    if (!isServerAnswer(error) && !isFinal(error)) return this.#drop();
    try {
      await this.#options.lines.within(client, ROLLBACK_MS, () =>
        client.query({ text: "ROLLBACK" }),
      );
    } catch {
      // Dropping the connection rolls back as well. The first error is the one to report.
      this.#drop();
    }
  }

  #drop(): void {
    const client = this.#client;
    this.#client = undefined;
    if (client !== undefined) this.#options.lines.drop(client);
  }

  close(): void {
    this.#drop();
  }

  #leftUntil(deadline: number): number {
    return Math.max(deadline - this.#options.timers.elapsedMs(), LEAST_MS);
  }
}

/**
 * Settings of a connection that writes. The batches join a few parameter rows to a table by its key; before the first
 * ANALYZE the planner may take the table for empty and scan it instead, which costs more with every row. Commits always wait
 * for the disk, whatever the default of the database or the role is: an intent that is lost after its tool was called leads
 * to a second call. Stricter settings (a standby) are kept.
 */
function settings(patienceMs: number): string {
  const statementMs = Math.ceil(ATTEMPT_SHARE * patienceMs) + lockMsOf(patienceMs);
  return [
    "SET enable_hashjoin = off",
    "SET enable_mergejoin = off",
    "SET enable_seqscan = off",
    `SET idle_in_transaction_session_timeout = ${TURN_MS}`,
    "SET default_transaction_isolation = 'read committed'",
    `SET lock_timeout = ${lockMsOf(patienceMs)}`,
    `SET statement_timeout = ${statementMs}`,
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') IN ('off', 'local')",
  ].join("; ");
}

function failureOf(
  parts: readonly PromiseSettledResult<unknown>[],
): PromiseRejectedResult | undefined {
  return parts.find((part) => part.status === "rejected");
}

/** Whether COMMIT itself was answered. Then it was a rollback, because the entries before it had failed. */
async function wasAnswered(committing: Written["committing"]): Promise<boolean> {
  return (await committing).at(-1)?.status === "fulfilled";
}

function isFinal(error: unknown): boolean {
  return (
    error instanceof GroupSpoiled ||
    error instanceof ClockRefused ||
    error instanceof HeadLost ||
    error instanceof SallyportError ||
    isOurs(error)
  );
}
