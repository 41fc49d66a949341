import { constants } from "node:fs";
import { type FileHandle, open, realpath, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { SallyportError } from "../model/errors.ts";
import { cleanTask, type Task } from "../model/task.ts";
import {
  checkSwap,
  type Decide,
  missingTask,
  type TaskStore,
  type TaskSwap,
} from "../store/tasks.ts";
import { type Random, systemRandom } from "../util/random.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import { parseTaskFile, printTaskFile, putTask, type TaskFile } from "./markdown-format.ts";

export interface MarkdownTaskStoreOptions {
  /** The file. It need not exist; its folder must. `PATH.lock` is created beside it. */
  readonly path: string;
  /** How long a swap waits for other processes before store_busy. */
  readonly waitMs?: number;
  readonly timers?: Timers;
  readonly random?: Random;
}

export interface MarkdownTaskStore extends TaskStore {
  readonly path: string;
  transact(decide: Decide): Promise<readonly Task[]>;
}

const EDITS_MAX = 20;

/**
 * Tasks in one Markdown file that people can read and edit, for some hundreds of tasks and a few processes on one machine:
 * every swap reads and replaces the whole file under a lock. Nothing stays open in between, so `close` does nothing. It also
 * throws store_unavailable (the file cannot be read or written), store_busy (the lock), commit_unknown (replaced, but maybe
 * not yet on disk), damaged_record (an invalid edit).
 */
export function markdownTaskStore(options: MarkdownTaskStoreOptions): MarkdownTaskStore {
  const { path, waitMs = 10_000, timers = systemTimers, random = systemRandom } = options;
  // Swaps of one process queue here and not at the lock, where they would wake each other up.
  let turn: Promise<unknown> = Promise.resolve();

  async function read(): Promise<TaskFile> {
    // The file is always replaced as a whole, so reading needs no lock.
    return parseTaskFile((await readText(path))?.text ?? "");
  }

  async function locked(decide: Decide): Promise<readonly Task[]> {
    const file = await realFile(path);
    return withFileLock(`${file}.lock`, { timers, random, waitMs }, async () => {
      for (let edits = 0; edits < EDITS_MAX; edits += 1) {
        const before = await readText(file);
        const content = parseTaskFile(before?.text ?? "");
        const { next, stored } = swapped(content, decide(content.tasks));
        if (stored.length === 0) return stored;
        if (await replaceText(file, printTaskFile(next), before)) return stored;
      }
      const hint = "The file is edited continuously.";
      throw new SallyportError("store_busy", { path, hint });
    });
  }

  function transact(decide: Decide): Promise<readonly Task[]> {
    const result = turn.then(() => locked(decide));
    turn = result.catch(() => {});
    return known(path, result);
  }

  return {
    path,
    async get(id) {
      const task = (await known(path, read())).tasks.get(id);
      if (task === undefined) throw missingTask(id);
      return task;
    },
    async compareAndSwap(task, expectedVersion) {
      // Copied now: the caller may change its object while the swap is queued.
      const swap = { task: cleanTask(task), expectedVersion };
      const [stored] = await transact(() => [swap]);
      return stored as Task;
    },
    list: async () => [...(await known(path, read())).tasks.values()],
    transact,
    async close() {},
  };
}

function swapped(file: TaskFile, swaps: readonly TaskSwap[]): { next: TaskFile; stored: Task[] } {
  let next = file;
  const stored = swaps.map(({ task, expectedVersion }) => {
    checkSwap(next.tasks.get(task.id), { task, expectedVersion });
    const written = { ...cleanTask(task), version: expectedVersion + 1 };
    next = putTask(next, written);
    return cleanTask(written);
  });
  return { next, stored };
}

/** Gives errors of the file system a code and keeps them as the cause. */
async function known<Result>(path: string, work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (error instanceof SallyportError || syscall === undefined) throw error;
    const hint = `${code} on ${syscall}. The folder must exist and be writable; nothing was written.`;
    throw new SallyportError("store_unavailable", { path, hint }, error);
  }
}

// A text file that is read and replaced as a whole.

const MAX_FILE_BYTES = 64 * 1024 * 1024;

interface FileContent {
  readonly text: string;
  /** Changes when any program writes or replaces the file. */
  readonly stamp: string;
  readonly mode: number;
}

// ignoreBOM keeps a byte order mark, which is not ours to drop.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The file with symbolic links resolved, so that all processes lock and replace the same one. Its folder must exist. */
async function realFile(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch (error) {
    if (!isCode(error, "ENOENT")) throw error;
    return path.join(await realpath(path.dirname(file)), path.basename(file));
  }
}

/** Undefined when there is no such file. Throws damaged_record for what is not UTF-8: rewriting it would destroy it. */
async function readText(file: string): Promise<FileContent | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
  try {
    const { size, mode } = await handle.stat();
    if (size > MAX_FILE_BYTES) {
      throw new SallyportError("payload_too_large", { file, size, most: MAX_FILE_BYTES });
    }
    const stamp = stampOf(await handle.stat({ bigint: true }));
    return { text: decode(await handle.readFile(), file), stamp, mode: mode & 0o777 };
  } finally {
    await handle.close();
  }
}

/**
 * Replaces the file durably and atomically, also across a crash. False, and nothing is changed, when the file is no longer the
 * one of `before`. Only under the lock: there is one temporary name, so that the next writer cleans up after a killed one.
 */
async function replaceText(
  file: string,
  text: string,
  before: FileContent | undefined,
): Promise<boolean> {
  const temporary = path.join(path.dirname(file), `.${path.basename(file)}.tmp`);
  await rm(temporary, { force: true });
  const handle = await open(temporary, "wx", before?.mode ?? 0o666);
  try {
    // The mode given to open is narrowed by the process's mask.
    if (before !== undefined) await handle.chmod(before.mode);
    await handle.writeFile(text, "utf8");
    await handle.sync();
  } finally {
    await handle.close();
  }
  // An editor does not use the lock. This shortens its window from milliseconds to microseconds.
  if ((await stampNow(file)) !== before?.stamp) return false;
  await rename(temporary, file);
  await syncFolder(file);
  return true;
}

/** The rename itself must be durable. From here on others may have read the new text. */
async function syncFolder(file: string): Promise<void> {
  if (process.platform === "win32") return;
  try {
    const folder = await open(path.dirname(file), "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  } catch (cause) {
    throw new SallyportError("commit_unknown", { file }, cause);
  }
}

async function stampNow(file: string): Promise<string | undefined> {
  try {
    return stampOf(await stat(file, { bigint: true }));
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function stampOf({ ino, size, mtimeNs }: { ino: bigint; size: bigint; mtimeNs: bigint }): string {
  return `${ino} ${size} ${mtimeNs}`;
}

function decode(bytes: Uint8Array, file: string): string {
  try {
    return utf8.decode(bytes);
  } catch (cause) {
    const hint = "Save the file as UTF-8.";
    throw new SallyportError("damaged_record", { file, hint }, cause);
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === code;
}

interface LockOptions {
  readonly timers: Timers;
  readonly random: Random;
  /** How long to wait before store_busy. */
  readonly waitMs: number;
}

const SQLITE_BUSY = 5;
const PAUSE_MS_MAX = 20;

/**
 * Runs `work` while this call holds the lock file. The lock is the operating system's, taken through SQLite, the one part of
 * Node that offers it: 0.05 ms each. It ends with its process, so a killed holder frees it immediately; a paused holder keeps
 * it, so it can finish its write when it continues.
 *
 * Not `proper-lockfile` 4.1.2, which judges by the age of a folder: a killed holder blocks for at least two seconds, two
 * processes that found an old lock both got it in 9 of 60 trials here (its issue 121), and a paused holder continues its write
 * beside the new holder.
 *
 * The empty file is not removed: removing it while others wait for it would make two locks.
 */
export async function withFileLock<Result>(
  file: string,
  options: LockOptions,
  work: () => Promise<Result>,
): Promise<Result> {
  // Loaded on use, because Node 22 prints a warning when it is.
  const { DatabaseSync } = await import("node:sqlite");
  const handle = openLock(() => new DatabaseSync(file, { timeout: 0 }), file);
  try {
    // Avoids a journal file beside ours; nothing is ever written into this one.
    run(handle, "PRAGMA journal_mode = MEMORY", file);
    for (let waited = 0; !run(handle, "BEGIN IMMEDIATE", file); ) {
      if (waited >= options.waitMs) throw busy(file, options.waitMs);
      // Short at first, because most locks are held for a few milliseconds, with jitter for concurrent waiters.
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

/** False when another process has the lock. */
function run(handle: DatabaseSync, sql: string, file: string): boolean {
  try {
    handle.exec(sql);
    return true;
  } catch (error) {
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return false;
    throw unusable(file, error);
  }
}

function openLock(make: () => DatabaseSync, file: string): DatabaseSync {
  try {
    return make();
  } catch (error) {
    throw unusable(file, error);
  }
}

function unusable(file: string, cause: unknown): SallyportError {
  const hint = "The lock file must be a regular file in a writable folder.";
  return new SallyportError("store_unavailable", { file, hint }, cause);
}

function busy(file: string, waitedMs: number): SallyportError {
  const hint = "Another process held the lock during the whole wait; check whether one is paused.";
  return new SallyportError("store_busy", { file, waitedMs, hint });
}
