import type { Task, TaskId } from "../model/task.ts";
import type { Row } from "./engine.ts";
import { fits, TASK_QUEUE, TASKS, taskOf } from "./task-rows.ts";
import type { TaskPage, TaskPageQuery } from "./tasks.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** So many rows are looked at for one page, and no more, however few of them have the status. */
const MOST_SCANNED = 2_000;
const CHUNK = 100;

/** One page over any engine. `reread` reads a task whose two rows were read at different moments. */
export async function pageOfTasks(
  engine: TenantEngine,
  { status, after, limit }: TaskPageQuery,
  reread: (id: TaskId) => Promise<Task | undefined>,
): Promise<TaskPage> {
  const tasks: Task[] = [];
  const places: number[] = [];
  let place = after;
  for (let scanned = 0; scanned < MOST_SCANNED; scanned += CHUNK) {
    const rows = await engine.find(TASKS, { afterOrd: place, limit: CHUNK });
    const wanted = rows.filter((row) => status !== "completed" || row["status"] === "completed");
    const queue = await queueOf(engine, wanted);
    for (const row of rows) {
      if (tasks.length === limit) return { tasks, places, next: place };
      place = Number(row["ord"]);
      if (!wanted.includes(row)) continue;
      const entry = queue.get(row["id"]);
      const task = fits(row, entry) ? taskOf(row, entry) : await reread(String(row["id"]));
      if (task === undefined || (status ?? task.status) !== task.status) continue;
      tasks.push(task);
      places.push(place);
    }
    if (rows.length < CHUNK) return { tasks, places, next: undefined };
  }
  return { tasks, places, next: place };
}

async function queueOf(engine: TenantEngine, rows: readonly Row[]) {
  const open = rows.filter((row) => row["status"] !== "completed");
  const found = await Promise.all(open.map(({ id = "" }) => engine.get(TASK_QUEUE, String(id))));
  return new Map(found.map((entry, index) => [open[index]?.["id"], entry]));
}
