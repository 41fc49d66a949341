import Sqlite from "better-sqlite3";
import { SallyportError } from "../../model/errors.ts";
import type { Database } from "./database.ts";

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
    const hint =
      "The disk did not confirm the write: check the disk, then read the record again before you repeat anything.";
    throw new SallyportError("commit_unknown", { hint }, cause);
  } finally {
    database.pragma("busy_timeout = 0");
  }
}
