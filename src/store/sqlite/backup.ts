import { rmSync } from "node:fs";
import Sqlite from "better-sqlite3";
import { SallyportError } from "../../model/errors.ts";
import { createPrivateFile } from "../../util/files.ts";

/** How many pages are copied before others may write again. */
const PAGES_AT_ONCE = 1_000;

/**
 * A whole copy of a store's file that only its owner may read, made while other processes keep writing. Nothing is
 * overwritten: throws already_exists. Shape of `onProgress`: push, after each part.
 */
export async function backupDatabase(
  from: string,
  to: string,
  onProgress: (copied: number, of: number) => void,
): Promise<void> {
  const database = new Sqlite(from, { readonly: true });
  try {
    if (createPrivateFile(to) === "exists") {
      const hint = "Name a file that does not exist; nothing is overwritten.";
      throw new SallyportError("already_exists", { id: to, hint });
    }
    await copyTo(database, to, onProgress);
  } finally {
    database.close();
  }
}

async function copyTo(
  database: Sqlite.Database,
  to: string,
  onProgress: (copied: number, of: number) => void,
): Promise<void> {
  try {
    // Without a snapshot of its own SQLite starts the copy again after every commit of another connection, for ever.
    database.exec("BEGIN; SELECT count(*) FROM sqlite_schema");
    await database.backup(to, {
      progress({ totalPages, remainingPages }) {
        onProgress(totalPages - remainingPages, totalPages);
        return PAGES_AT_ONCE;
      },
    });
  } catch (error) {
    // Half a copy would pass for a backup.
    rmSync(to, { force: true });
    throw error;
  }
}

/** The version of SQLite that would be used. */
export function sqliteVersion(): string {
  const database = new Sqlite(":memory:");
  try {
    return String(database.prepare("SELECT sqlite_version()").pluck().get());
  } finally {
    database.close();
  }
}
