import { TASK_BLOCKS, TASK_QUEUE, TASKS, type TaskId } from "../model/task.ts";
import type { Row, Step } from "./engine.ts";
import { movedLane } from "./tasks.ts";
import type { TenantEngine } from "./tenant-engine.ts";

export interface Waiting {
  /** How many blockers are not completed. One that does not exist blocks too: it may be on its way. */
  readonly waits: number;
  readonly steps: readonly Step[];
}

/**
 * What has to be written when a task waits for `after` instead of `before`. `fresh` are tasks of the same change, which
 * count for themselves who waits for them.
 */
export async function waitFor(
  engine: TenantEngine,
  id: TaskId,
  { before, after, fresh }: { before: readonly TaskId[]; after: readonly TaskId[]; fresh: Fresh },
): Promise<Waiting> {
  const all = [...new Set([...before, ...after])];
  const states = await Promise.all(all.map((blocker) => stateOf(engine, blocker, fresh)));
  const state = new Map(all.map((blocker, index) => [blocker, states[index]]));
  const steps: Step[] = [];
  for (const blocker of all) {
    const [was, is] = [before.includes(blocker), after.includes(blocker)];
    if (was === is) continue;
    const edge = { table: TASK_BLOCKS, id: edgeId(id, blocker) };
    if (is)
      steps.push({
        op: "insert",
        ...edge,
        row: TASK_BLOCKS.row({ blockerId: blocker, taskId: id }),
      });
    else steps.push({ op: "delete", ...edge, where: {} });
    if (state.get(blocker) !== "open" || blocker === id) continue;
    // Holds only while the blocker stands in the queue: if it is completed in between, we look again.
    const set = { dependents: { plus: is ? 1 : -1 } };
    steps.push({ op: "update", table: TASK_QUEUE, id: blocker, where: {}, set });
  }
  const waits = new Set(after.filter((blocker) => state.get(blocker) !== "completed")).size;
  return { waits, steps };
}

/** Tasks of the same change: true for those that are completed from the start. */
export type Fresh = ReadonlyMap<TaskId, boolean>;

async function stateOf(
  engine: TenantEngine,
  id: TaskId,
  fresh: Fresh,
): Promise<"open" | "completed" | "other"> {
  const own = fresh.get(id);
  if (own !== undefined) return own ? "completed" : "other";
  if ((await engine.get(TASK_QUEUE, id)) !== undefined) return "open";
  return (await engine.get(TASKS, id)) === undefined ? "other" : "completed";
}

/** Who waits for this task. */
export async function dependentsOf(engine: TenantEngine, id: TaskId): Promise<readonly TaskId[]> {
  const found: TaskId[] = [];
  for (let afterOrd = 0; ; ) {
    const page: readonly Row[] = await engine.find(TASK_BLOCKS, {
      where: { blocker_id: id },
      afterOrd,
      limit: PAGE,
    });
    found.push(...page.map((row) => String(row["task_id"])));
    if (page.length < PAGE) return found;
    afterOrd = Number(page.at(-1)?.["ord"]);
  }
}
const PAGE = 1_000;

/** Those who wait for a task have one blocker fewer (-1) when it is completed, or one more when it is open again. */
export async function recount(
  engine: TenantEngine,
  dependents: readonly TaskId[],
  by: 1 | -1,
): Promise<readonly Step[]> {
  const rows = await Promise.all(dependents.map((id) => engine.get(TASK_QUEUE, id)));
  return rows
    .filter((row) => row !== undefined)
    .map((row): Step => {
      const { lane = null, waits = null } = row;
      const left = Number(waits) + by;
      const set = { waits: left, lane: movedLane(lane, left) };
      return {
        op: "update",
        table: TASK_QUEUE,
        id: String(row["id"]),
        where: { lane, waits },
        set,
      };
    });
}

/** Both names can be any text, so the length keeps them apart. */
function edgeId(task: TaskId, blocker: TaskId): string {
  return `${task.length} ${task} ${blocker}`;
}
