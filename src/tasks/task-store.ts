import { SallyportError } from "../model/errors.ts";
import type { Task, TaskEvent, TaskId } from "../model/task.ts";

/**
 * Where tasks lie. Four operations and no rule: who has a store of their own implements these and runs `taskCases` of
 * the conformance suite. All rules are in the task list, so every store behaves alike.
 *
 * A failure of the store itself is a rejection of the same call. Every task handed out is the caller's own copy.
 * Shape: callback; the task list waits for every call.
 */
export interface TaskStore {
  /** Throws not_found. */
  get(id: TaskId): Promise<Task>;
  /**
   * Writes the task as version `expectedVersion + 1`, whatever its own version says, and gives back what was stored.
   * Comparing and writing are one atomic step, also between processes; a refused swap leaves everything as it was.
   * Expected version 0 inserts. Throws already_exists (0, and the id is there), not_found (another one, and it is not),
   * concurrent_modification (the stored version is another).
   */
  compareAndSwap(task: Task, expectedVersion: number, cause?: TaskCause): Promise<Task>;
  /** All tasks, oldest first. */
  list(): Promise<readonly Task[]>;
  /** Releases what the store holds. May be called again. */
  close(): Promise<void>;
  /**
   * Not needed, for stores that can: decides by all tasks while nobody else writes, and makes all of these swaps or none.
   * `decide` answers at once, changes nothing it is given, and may be asked again; what it throws comes out. Throws what
   * the first refused swap would.
   */
  transact?(decide: Decide): Promise<readonly Task[]>;
}

export type Decide = (tasks: ReadonlyMap<TaskId, Task>) => readonly TaskSwap[];

export interface TaskSwap {
  readonly task: Task;
  readonly expectedVersion: number;
  readonly cause?: TaskCause;
}

/** What happened and who did it, for a store that writes a trail in the same step. The others need not look at it. */
export interface TaskCause {
  readonly event: TaskEvent;
  readonly actor: string;
}

/** Whoever did not say who it is. */
export const CALLER = "caller";

/** What a swap may do, given the task that is stored now. Throws as `compareAndSwap` says. For authors of stores. */
export function checkSwap(current: Task | undefined, { task, expectedVersion }: TaskSwap): void {
  const { id } = task;
  if (!Number.isSafeInteger(expectedVersion) || expectedVersion < 0) {
    const hint = "Give the version that you have read, or 0 to insert.";
    throw new SallyportError("invalid_input", { what: "expected version", id, hint });
  }
  if (expectedVersion === 0) {
    if (current === undefined) return;
    throw new SallyportError("already_exists", { id, version: current.version });
  }
  if (current === undefined) throw missingTask(id);
  if (current.version !== expectedVersion) {
    const { version } = current;
    throw new SallyportError("concurrent_modification", { id, expectedVersion, version });
  }
}

export function missingTask(id: TaskId): SallyportError {
  return new SallyportError("not_found", { id: String(id), hint: "Check the id and the list." });
}
