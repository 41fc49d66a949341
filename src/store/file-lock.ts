import type { DatabaseSync } from "node:sqlite";
import { SallyportError } from "../model/errors.ts";
import type { Random } from "../util/random.ts";
import type { Timers } from "../util/timers.ts";

export interface LockOptions {
  readonly timers: Timers;
  readonly random: Random;
  /** How long to wait for others before store_busy. */
  readonly waitMs: number;
}

const SQLITE_BUSY = 5;
const PAUSE_MS_MAX = 20;

/**
 * Runs `work` while this process, and within it this call, alone holds the lock file. The lock is the operating system's,
 * taken through SQLite, which is the one part of Node that can ask for it: 0.05 ms each. It ends with the process, so
 * that of a killed holder is free at once; and it stays with one that is merely paused, which can therefore wake up in
 * the middle of a write and finish it.
 *
 * Not `proper-lockfile` 4.1.2, which judges by the age of a folder: a killed holder blocks for two seconds at least, two
 * processes that find an old lock both got it in 9 of 60 trials here (its issue 121), and a paused holder wakes up to
 * write beside the one who took over.
 *
 * The file stays behind, empty: who removes it while others wait for it makes two locks out of one.
 */
export async function withFileLock<Result>(
  file: string,
  options: LockOptions,
  work: () => Promise<Result>,
): Promise<Result> {
  // Loaded late, because Node 22 prints a warning when it is, and only those who lock should see it.
  const { DatabaseSync } = await import("node:sqlite");
  const handle = open(() => new DatabaseSync(file, { timeout: 0 }), file);
  try {
    // No file of SQLite's own beside ours; nothing is ever written into this one.
    run(handle, "PRAGMA journal_mode = MEMORY", file);
    for (let waited = 0; !run(handle, "BEGIN IMMEDIATE", file); ) {
      if (waited >= options.waitMs) throw busy(file, options.waitMs);
      // Short at first, because most locks are held for a few milliseconds, and uneven, so that waiters do not march in step.
      const most = Math.min(PAUSE_MS_MAX, 2 + waited / 4);
      const pause = 1 + ((options.random.bytes(1)[0] ?? 0) / 256) * most;
      await options.timers.sleep(pause);
      waited += pause;
    }
    return await work();
  } finally {
    handle.close();
  }
}

/** False when somebody else has the lock. */
function run(handle: DatabaseSync, sql: string, file: string): boolean {
  try {
    handle.exec(sql);
    return true;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return false;
    throw unusable(file, error);
  }
}

function open(make: () => DatabaseSync, file: string): DatabaseSync {
  try {
    return make();
  } catch (error) {
    throw unusable(file, error);
  }
}

function unusable(file: string, cause: unknown): SallyportError {
  const hint = "The lock file must be a plain file of ours in a folder where we may write.";
  return new SallyportError("store_unavailable", { file, hint }, cause);
}

function busy(file: string, waitedMs: number): SallyportError {
  const hint = "Another process has held the lock all the time; look whether one is paused.";
  return new SallyportError("store_busy", { file, waitedMs, hint });
}
