import { rmSync, statSync } from "node:fs";
import Sqlite from "better-sqlite3";
import { SallyportError } from "../../model/errors.ts";
import { DEFINITIONS } from "../../model/interaction.ts";
import { PICTURES } from "../../model/operation.ts";
import { RECORDS } from "../../model/records.ts";
import { stopwatch } from "../../util/clock.ts";
import { createPrivateFile } from "../../util/files.ts";
import { sleepSync } from "../../util/timers.ts";
import { baselineOf, ddlOf, type Migration, pendingMigrations, SQLITE } from "../ddl.ts";

export type Database = Sqlite.Database;
export type Statement = Sqlite.Statement<unknown[]>;

// The file of a store: opening and checking it, its tables, what SQLite's errors mean, backups and file locks.

/** "SALY": distinguishes our files from SQLite files of other programs. */
const APPLICATION_ID = 0x53414c59;
/** Older versions have a WAL defect that can lose a commit when two processes write and one checkpoints. */
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
      // Two processes that open a new file may both get busy immediately: changing the journal mode does not wait.
      if (!isBusy(error) || stopwatch.now() >= deadline) throw asStoreError(error, file);
      sleepSync(5);
    }
  }
}

/** Keeps the upper pages of a large index in memory. */
const READING_CACHE_KIB = 32 * 1024;
/** Writes go to the ends of tables, and SQLite searches its whole cache at a commit that moved pages. */
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
    // Pages that every write touches are copied back once per 32 MiB of log instead of once per 4, so fewer callers wait
    // for it.
    database.pragma("wal_autocheckpoint = 8000");
    database.pragma(`cache_size = -${cacheKib}`);
    database.pragma("foreign_keys = ON");
    migrate(database, migrations);
    // From here on the engine waits for other processes, so that SQLite never blocks the event loop.
    database.pragma("busy_timeout = 0");
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * SQLite would make the file readable for everybody; its log and shared memory get the mode of the file. If it cannot be
 * created, SQLite reports why.
 */
function createPrivately(file: string): void {
  if (file === ":memory:" || file === "") return;
  try {
    createPrivateFile(file);
  } catch {
    // Opening it fails as well, with the error that callers expect.
  }
}

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

/** SQLite takes a file of a single byte for an empty one, but it is the rest of another file. */
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
    const hint = "Another process holds the file: try again, or let one process write for all.";
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
 * another process has it. Uses SQLite, because Node has no such lock. Throws store_unavailable.
 */
export function holdFile(file: string): FileHold | undefined {
  let handle: Sqlite.Database | undefined;
  try {
    createPrivateFile(file);
    handle = new Sqlite(file, { timeout: 0 });
    // No journal file beside it; nothing is ever written into this one.
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

/** How many pages are copied before other processes may write again. */
const PAGES_AT_ONCE = 1_000;

/**
 * Makes a complete copy of a store's file that only its owner may read, while other processes keep writing. Nothing is
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
    // Without a snapshot of its own SQLite would restart the copy after every commit of another connection.
    database.exec("BEGIN; SELECT count(*) FROM sqlite_schema");
    await database.backup(to, {
      progress({ totalPages, remainingPages }) {
        onProgress(totalPages - remainingPages, totalPages);
        return PAGES_AT_ONCE;
      },
    });
  } catch (error) {
    // A partial copy could be mistaken for a backup.
    rmSync(to, { force: true });
    throw error;
  }
}

/** The version of SQLite in use. */
export function sqliteVersion(): string {
  const database = new Sqlite(":memory:");
  try {
    return String(database.prepare("SELECT sqlite_version()").pluck().get());
  } finally {
    database.close();
  }
}

/**
 * The audit log of the first format, one row per entry. `ord` is the number of the chain above 32 bits for the entry.
 *
 * There is no index on times of update: every move would rewrite it, and the states that are queried by age are the few in
 * flight.
 */
const AUDIT = `CREATE TABLE chains (
  nr INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE audit (
  ord INTEGER PRIMARY KEY,
  chain INTEGER GENERATED ALWAYS AS (ord >> 32) VIRTUAL,
  seq INTEGER GENERATED ALWAYS AS (ord & 4294967295) VIRTUAL,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  subject TEXT NOT NULL,
  session TEXT NOT NULL,
  actor TEXT NOT NULL,
  data TEXT,
  salt TEXT,
  data_hash TEXT,
  hash TEXT NOT NULL,
  CHECK ((ord & 4294967295) > 0)
) STRICT;`;

const BASELINE = [AUDIT, ...baselineOf(RECORDS).map((record) => ddlOf(record, SQLITE))].join("\n");

/**
 * The log in blocks: one row per transaction and tenant. `ord` is the number of the chain above 32 bits for the number of the
 * block's last entry, so a block is appended to the end of a table; a key of tenant and number would move the neighbours of
 * every fifth row to other pages. The old table keeps its entries under another name, so that a process of the earlier version
 * that still runs fails instead of writing a second end of a chain.
 */
const BLOCKS = `ALTER TABLE audit RENAME TO audit_entries;
CREATE TABLE audit_blocks (
  ord INTEGER PRIMARY KEY,
  chain INTEGER GENERATED ALWAYS AS (ord >> 32) VIRTUAL,
  last INTEGER GENERATED ALWAYS AS (ord & 4294967295) VIRTUAL,
  at INTEGER NOT NULL,
  head BLOB NOT NULL,
  body BLOB NOT NULL
) STRICT;
${ddlOf(DEFINITIONS, SQLITE)}`;

/** After the first release a record changes by a further migration, and the baseline stays what it was then. */
export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: "baseline", sql: BASELINE },
  { version: 2, name: "blocks", sql: BLOCKS },
  {
    version: 3,
    name: "machine verdict",
    sql: "ALTER TABLE decisions ADD COLUMN machine_verdict TEXT;",
  },
  { version: 4, name: "pictures", sql: ddlOf(PICTURES, SQLITE) },
];
