import Sqlite from "better-sqlite3";

/** How many pages are copied before others may write again. */
const PAGES_AT_ONCE = 1_000;

/** A whole copy of a store's file, made while other processes keep writing. Shape of `onProgress`: push, after each part. */
export async function backupDatabase(
  from: string,
  to: string,
  onProgress: (copied: number, of: number) => void,
): Promise<void> {
  const database = new Sqlite(from, { readonly: true });
  try {
    // Without a snapshot of its own SQLite starts the copy again after every commit of another connection, for ever.
    database.exec("BEGIN; SELECT count(*) FROM sqlite_schema");
    await database.backup(to, {
      progress({ totalPages, remainingPages }) {
        onProgress(totalPages - remainingPages, totalPages);
        return PAGES_AT_ONCE;
      },
    });
  } finally {
    database.close();
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
