import Sqlite from "better-sqlite3";
import type { ChainHead } from "../../model/audit-entry.ts";
import { SallyportError } from "../../model/errors.ts";
import { toIso } from "../../util/clock.ts";
import type { Database, Statement } from "./database.ts";

/** Names come from outside, so what is remembered of them is bounded. */
const MOST_KNOWN = 4_096;

/** The numbers of the tenants' chains. Entries lie by chain and place, so that a chain grows at an end. */
export class Chains {
  readonly #known = new Map<string, number>();
  readonly #find: Statement;
  readonly #add: Statement;
  readonly #heads: Statement;

  constructor(database: Database) {
    this.#find = database.prepare("SELECT nr FROM chains WHERE tenant = ?").pluck();
    this.#add = database.prepare("INSERT INTO chains (tenant) VALUES (?) RETURNING nr").pluck();
    // One statement for all of them: an anchor round looks at every tenant.
    this.#heads = database.prepare(
      `SELECT c.tenant, a.seq, a.hash, a.at FROM chains AS c JOIN audit AS a
ON a.ord = (SELECT max(ord) FROM audit WHERE ord > c.nr << 32 AND ord < (c.nr + 1) << 32) ORDER BY c.tenant`,
    );
  }

  /** Undefined for a tenant that never wrote. Ask before `begin` in a transaction: what is found is remembered for good. */
  find(tenant: string): number | undefined {
    const known = this.#known.get(tenant);
    if (known !== undefined) return known;
    const found = this.#find.get(tenant) as number | undefined;
    if (found === undefined) return undefined;
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(tenant, found);
    return found;
  }

  /** A new chain. It is not remembered: it is there only once the transaction is. */
  begin(tenant: string): number {
    return this.#add.get(tenant) as number;
  }

  heads(): readonly ChainHead[] {
    const rows = this.#heads.all() as (Omit<ChainHead, "at"> & { readonly at: number })[];
    return rows.map((row) => ({ ...row, at: toIso(row.at) }));
  }
}

/** For the caller whose write may or may not be there. */
export const UNCONFIRMED =
  "The disk did not confirm the write: check the disk, then read the record again before you repeat anything.";

/** How long the overwriting commit waits for another process that is writing. */
const PATIENCE_MS = 1_000;

/**
 * Whether a COMMIT that failed with this error may come back after a restart. SQLite appends the frames with their commit
 * mark to the log before it syncs them. When the sync fails, SQLite forgets the frames but leaves them in the file, and the
 * next process to recover the log finds a complete transaction. A failed write is different: the frame that carries the mark
 * is written last, so it is not there.
 */
export function isCommitInDoubt(error: unknown): boolean {
  if (!(error instanceof Sqlite.SqliteError)) return false;
  const { code } = error;
  if (code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_CONSTRAINT")) return false;
  return code !== "SQLITE_IOERR_WRITE" && code !== "SQLITE_FULL";
}

/**
 * Makes sure that a failed commit stays failed: the next commit is written over its frames, so once that one is on disk,
 * the failed one cannot come back. Throws commit_unknown when this fails too.
 */
export function overwriteFailedCommit(database: Database, cause: unknown): void {
  try {
    if (database.inTransaction) database.exec("ROLLBACK");
    database.pragma(`busy_timeout = ${PATIENCE_MS}`);
    // Writes the first page as it is, which is the smallest commit there is.
    database.pragma(`user_version = ${database.pragma("user_version", { simple: true })}`);
  } catch {
    throw new SallyportError("commit_unknown", { hint: UNCONFIRMED }, cause);
  } finally {
    database.pragma("busy_timeout = 0");
  }
}
