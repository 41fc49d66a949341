import { SallyportError } from "../model/errors.ts";
import type { Task } from "../model/task.ts";
import { cleanTask } from "../model/task-codec.ts";
import { withFileLock } from "../store/file-lock.ts";
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
import { readText, realFile, replaceText } from "./text-file.ts";

export interface MarkdownTaskStoreOptions {
  /** The file. It need not exist; its folder must. `PATH.lock` will stand beside it. */
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
 * Tasks in one Markdown file that people can read and edit. For some hundreds of tasks and a handful of processes on one
 * machine: every swap reads and replaces the whole file under a lock. Nothing stays open in between, so `close` does
 * nothing. Beyond its contract it throws store_unavailable (the file cannot be read or written), store_busy (the lock),
 * commit_unknown (replaced, but maybe not yet on the disk), damaged_record (an edit that makes no sense).
 */
export function markdownTaskStore(options: MarkdownTaskStoreOptions): MarkdownTaskStore {
  const { path, waitMs = 10_000, timers = systemTimers, random = systemRandom } = options;
  // Swaps of one process queue here rather than at the lock, where they would only wake each other up.
  let turn: Promise<unknown> = Promise.resolve();

  async function read(): Promise<TaskFile> {
    // The file is always replaced whole, so a look needs no lock.
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
      const hint = "Somebody edits the file all the time.";
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
      // Copied now: the caller may change its own while we wait for our turn.
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

/** What the file system says gets a code, and stays reachable as the cause. */
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
