import { statSync } from "node:fs";
import Sqlite from "better-sqlite3";
import { SallyportError } from "../../model/errors.ts";
import { type Clock, stopwatch } from "../../util/clock.ts";
import { createPrivateFile } from "../../util/files.ts";
import { sleepSync } from "../../util/timers.ts";
import { type Migration, pendingMigrations } from "../migration.ts";
import { MIGRATIONS } from "./migrations.ts";

export type Database = Sqlite.Database;
export type Statement = Sqlite.Statement<unknown[]>;

/** "SALY": tells our files from other programs' SQLite files. */
const APPLICATION_ID = 0x53414c59;
/** Older ones have a WAL defect that can lose a commit when two processes write and one checkpoints. */
const OLDEST_SQLITE = [3, 51, 3] as const;

/**
 * Opens or creates a store file, durable by default: WAL with synchronous=FULL. Throws store_incompatible for anything that
 * is not a store this version can use, store_unavailable when the file cannot be opened; neither writes to the file.
 */
export function openDatabase(
  file: string,
  patienceMs: number,
  cacheKib: number = READING_CACHE_KIB,
  migrations: readonly Migration[] = MIGRATIONS,
): Database {
  const deadline = stopwatch.now() + patienceMs;
  for (;;) {
    try {
      const left = Math.max(0, Math.round(deadline - stopwatch.now()));
      return opened(file, left, cacheKib, migrations);
    } catch (error) {
      // Two who open a new file at once may both be told busy without waiting: changing the journal mode does not wait.
      if (!isBusy(error) || stopwatch.now() >= deadline) throw asStoreError(error, file);
      sleepSync(5);
    }
  }
}

/** So that the upper pages of a large index stay at hand. */
const READING_CACHE_KIB = 32 * 1024;
/** Whoever only writes works at the ends of tables, and SQLite searches its whole cache at a commit that moved pages. */
export const WRITING_CACHE_KIB = 8 * 1024;

function opened(
  file: string,
  patienceMs: number,
  cacheKib: number,
  migrations: readonly Migration[],
): Database {
  createPrivately(file);
  const database = new Sqlite(file, { timeout: patienceMs });
  try {
    checkLibrary(database);
    checkKind(database, file);
    pendingMigrations(migrations, versionOf(database));
    const mode = database.pragma("journal_mode = WAL", { simple: true });
    if (mode !== "wal" && file !== ":memory:") {
      const hint = "Put the file on a local disk that supports shared memory maps.";
      throw new SallyportError("store_incompatible", { file, journal: String(mode), hint });
    }
    database.pragma("synchronous = FULL");
    // On macOS a plain fsync may stop at the drive's cache. No effect elsewhere.
    database.pragma("fullfsync = ON");
    database.pragma("checkpoint_fullfsync = ON");
    // Pages that every write touches are copied back once per 32 MiB of log instead of once per 4, and that many fewer
    // callers wait for it.
    database.pragma("wal_autocheckpoint = 8000");
    database.pragma(`cache_size = -${cacheKib}`);
    database.pragma("foreign_keys = ON");
    migrate(database, migrations);
    // From here on waiting for another process happens outside SQLite, so that it never blocks the event loop.
    database.pragma("busy_timeout = 0");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * SQLite would make the file readable for everybody; its log and shared memory get the mode of the file. Where it cannot be
 * made, SQLite says why.
 */
function createPrivately(file: string): void {
  if (file === ":memory:" || file === "") return;
  try {
    createPrivateFile(file);
  } catch {
    // Opening it fails as well, with the reason that callers know.
  }
}

/**
 * The machine's time as SQLite reads it. All who write one file are on one machine, so this is one clock for them, whatever
 * a process has done to its own `Date`.
 */
export function databaseClock(database: Database): Clock {
  const now = database.prepare(`SELECT ${NOW_SQL}`).pluck();
  return { now: () => Math.round(Number(now.get()) * 1000) };
}

/** In seconds, to the millisecond. */
export const NOW_SQL = "unixepoch('now', 'subsec')";

function checkLibrary(database: Database): void {
  const version = String(database.prepare("SELECT sqlite_version()").pluck().get());
  const parts = version.split(".").map(Number);
  for (const [index, least] of OLDEST_SQLITE.entries()) {
    const part = parts[index] ?? 0;
    if (part > least) return;
    if (part < least) {
      const hint = `Install a driver that brings SQLite ${OLDEST_SQLITE.join(".")} or newer.`;
      throw new SallyportError("store_incompatible", { sqlite: version, hint });
    }
  }
}

/** Reads only: a file that is not ours must stay as it is. */
function checkKind(database: Database, file: string): void {
  const id = database.pragma("application_id", { simple: true });
  if (id === APPLICATION_ID) return;
  const tables = database.prepare("SELECT count(*) FROM sqlite_schema").pluck().get();
  if (id === 0 && tables === 0 && !isScrap(file)) return;
  const hint = "It is another program's database. Name a new file, or the right one.";
  throw new SallyportError("store_incompatible", { file, hint });
}

/** SQLite takes a file of a single byte for an empty one; it is what is left of another. */
function isScrap(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 1;
}

function migrate(database: Database, migrations: readonly Migration[]): void {
  if (pendingMigrations(migrations, versionOf(database)).length === 0) return;
  database.exec("BEGIN IMMEDIATE");
  try {
    // Looked up again under the lock: another process may have migrated while we waited for it.
    for (const migration of pendingMigrations(migrations, versionOf(database))) {
      database.exec(migration.sql);
      database.pragma(`user_version = ${migration.version}`);
    }
    database.pragma(`application_id = ${APPLICATION_ID}`);
    database.exec("COMMIT");
  } catch (error) {
    if (database.inTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

function versionOf(database: Database): number {
  return Number(database.pragma("user_version", { simple: true }));
}

export function isBusy(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && error.code.startsWith("SQLITE_BUSY");
}

export function asStoreError(error: unknown, file: string): unknown {
  if (!(error instanceof Error) || error instanceof SallyportError) return error;
  const code = error instanceof Sqlite.SqliteError ? error.code : error.name;
  const fits = (prefix: string): boolean => code.startsWith(prefix);
  if (fits("SQLITE_NOTADB") || fits("SQLITE_CORRUPT")) {
    const hint =
      "The file is not a database, or it is damaged: name another file or restore a backup.";
    return new SallyportError("store_incompatible", { file, sqlite: code, hint }, error);
  }
  if (fits("SQLITE_BUSY")) {
    const hint = "Another process holds the file: ask again, or let one process write for all.";
    return new SallyportError("store_busy", { file, sqlite: code, hint }, error);
  }
  if (["SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG"].some(fits)) {
    const hint = "The database refused the values; nothing was written.";
    return new SallyportError("invalid_input", { sqlite: code, hint }, error);
  }
  const hint = "Check that the folder exists, that it is writable and that the disk is not full.";
  return new SallyportError("store_unavailable", { file, sqlite: code, hint }, error);
}

export interface FileHold {
  /** The file stays behind, empty: removing it while another process waits for it would make two locks out of one. */
  release(): void;
}

/**
 * Takes the operating system's lock on this file until it is released or the process ends, however it ends; undefined when
 * another process has it. Through SQLite, which is the one part here that can ask for such a lock. Throws store_unavailable.
 */
export function holdFile(file: string): FileHold | undefined {
  let handle: Sqlite.Database | undefined;
  try {
    createPrivateFile(file);
    handle = new Sqlite(file, { timeout: 0 });
    // No file of SQLite's own beside it; nothing is ever written into this one.
    handle.pragma("journal_mode = MEMORY");
    handle.exec("BEGIN EXCLUSIVE");
    const held = handle;
    return { release: () => void held.close() };
  } catch (error) {
    handle?.close();
    if (isBusy(error)) return undefined;
    throw asStoreError(error, file);
  }
}
