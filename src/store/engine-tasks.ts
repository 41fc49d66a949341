import { SallyportError } from "../model/errors.ts";
import { checkName, isName } from "../model/names.ts";
import type { Task, TaskId } from "../model/task.ts";
import { cleanTask } from "../model/task-codec.ts";
import { type Clock, stopwatch as realStopwatch } from "../util/clock.ts";
import type { Row, Table } from "./engine.ts";
import { dependentsOf } from "./task-blocks.ts";
import { engineClaims } from "./task-claims.ts";
import { pageOfTasks } from "./task-pages.ts";
import { fits, TASK_QUEUE, TASKS, taskOf } from "./task-rows.ts";
import { insertChange, type StoredTask, swapChange } from "./task-swaps.ts";
import {
  checkSwap,
  type DirectTasks,
  missingTask,
  type TaskCause,
  type TaskStore,
  type TaskSwap,
} from "./tasks.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** How often we look again when others write between looking and writing. */
const ROUNDS = 100;
const PAGE = 5_000;
/** What a swap compares beside the lease. */
const SEEN = ["version", "waits", "dependents"];

/** The task list's store over any engine. `now` is the engine's clock. */
export function engineTasks(
  engine: TenantEngine,
  now: () => Promise<number>,
  stopwatch: Clock = realStopwatch,
): TaskStore & { readonly direct: DirectTasks } {
  const stored = (id: TaskId) => readStored(engine, id);
  const insert = (swaps: readonly TaskSwap[]) => insertAll(engine, swaps.map(fresh));
  const { freed, direct } = engineClaims({ engine, now, insert, stored, stopwatch });

  async function swap({ task, expectedVersion, cause }: TaskSwap): Promise<Task> {
    const next = { ...task, version: expectedVersion + 1 };
    for (let round = 0; round < ROUNDS; round += 1) {
      const current = await stored(task.id);
      checkSwap(current?.task, { task, expectedVersion });
      if (current === undefined) throw missingTask(task.id);
      const result = await engine.commit(await swapChange(engine, current, next, cause));
      if (result.committed) {
        freed(next);
        return next;
      }
      // Everything else is as we saw it, so it is the lease that is over.
      const { current: met = {}, step } = result;
      const same = SEEN.every((column) => met[column] === current.queue?.[column]);
      if (cause?.underLease === true && step === 0 && same) throw lost(current.task);
    }
    throw outrun(task.id);
  }

  return {
    async get(id) {
      const found = await stored(id);
      if (found === undefined) throw missingTask(id);
      return found.task;
    },
    async compareAndSwap(task, expectedVersion, cause) {
      const clean = { task: cleanTask(task), expectedVersion, ...causeIn(cause) };
      if (expectedVersion !== 0) return swap(clean);
      // Somebody may have been told to wait for it before it was there.
      const known = await dependentsOf(engine, clean.task.id);
      const [added] = await insertAll(engine, [fresh(clean)], known);
      freed(added as Task);
      return added as Task;
    },
    async list() {
      const queue = new Map((await all(engine, TASK_QUEUE)).map((row) => [row["id"], row]));
      const tasks: Task[] = [];
      for (const row of await all(engine, TASKS)) {
        const entry = queue.get(row["id"] ?? "");
        const task = fits(row, entry)
          ? taskOf(row, entry)
          : (await stored(String(row["id"])))?.task;
        if (task !== undefined) tasks.push(task);
      }
      return tasks;
    },
    page: (query) => pageOfTasks(engine, query, async (id) => (await stored(id))?.task),
    // It holds nothing: whoever opened the store closes it.
    async close() {},
    direct,
  };
}

/** Both rows of a task, as they were at one moment. */
async function readStored(engine: TenantEngine, id: TaskId): Promise<StoredTask | undefined> {
  if (!isName(id)) return undefined;
  for (let round = 0; round < ROUNDS; round += 1) {
    const [queue, row] = await Promise.all([engine.get(TASK_QUEUE, id), engine.get(TASKS, id)]);
    if (row === undefined && queue === undefined) return undefined;
    if (row === undefined || !fits(row, queue)) continue;
    return { task: taskOf(row, queue), queue: row["status"] === "completed" ? undefined : queue };
  }
  throw outrun(id);
}

async function all(engine: TenantEngine, table: Table): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (let afterOrd = 0; ; ) {
    const page = await engine.find(table, { afterOrd, limit: PAGE });
    for (const row of page) rows.push(row);
    if (page.length < PAGE) return rows;
    afterOrd = Number(page.at(-1)?.["ord"]);
  }
}

async function insertAll(
  engine: TenantEngine,
  swaps: readonly TaskSwap[],
  known: readonly TaskId[] = [],
): Promise<readonly Task[]> {
  const ids = swaps.map(({ task }) => task.id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) throw new SallyportError("already_exists", { id: twice });
  for (let round = 0; round < ROUNDS && swaps.length > 0; round += 1) {
    const change = await insertChange(engine, swaps, known);
    const result = await engine.commit(change);
    if (result.committed) return swaps.map(({ task }) => task);
    const step = change.steps[result.step];
    if (step?.op === "insert" && step.table === TASKS) {
      const version = Number(result.current?.["version"]);
      throw new SallyportError("already_exists", { id: step.id, version });
    }
  }
  if (swaps.length === 0) return [];
  throw outrun(ids[0] ?? "");
}

function fresh({ task, expectedVersion, cause }: TaskSwap): TaskSwap {
  const clean = cleanTask(task);
  checkName("task id", clean.id);
  checkSwap(undefined, { task: clean, expectedVersion });
  return { task: { ...clean, version: 1 }, expectedVersion, ...causeIn(cause) };
}

function causeIn(cause: TaskCause | undefined): { cause?: TaskCause } {
  return cause === undefined ? {} : { cause };
}

function lost({ id, status, fence }: Task): SallyportError {
  const hint = "Its lease ran out before this could be written. Stop working on it.";
  return new SallyportError("claim_lost", { id, status, current: fence, hint });
}

function outrun(id: TaskId): SallyportError {
  const hint = `Others changed it ${ROUNDS} times while this was asked for. Ask again.`;
  return new SallyportError("store_busy", { id, hint });
}
