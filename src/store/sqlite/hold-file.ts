import Sqlite from "better-sqlite3";
import { createPrivateFile } from "../../util/private-files.ts";
import { asStoreError, isBusy } from "./database.ts";

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
