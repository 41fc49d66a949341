import { SallyportError } from "../../src/model/errors.ts";
import type { Task, TaskId } from "../../src/model/task.ts";
import { START } from "../../src/store/conformance/samples.ts";
import type { TaskStore } from "../../src/store/tasks.ts";
import { createTaskList, type TaskList } from "../../src/tasks/create-task-list.ts";

import { type Clock, fromIso, type ManualClock, manualClock } from "../../src/util/clock.ts";
import type { Call } from "./linearizability.ts";
import type { TaskInput, TaskOutput } from "./task-model.ts";

export type TaskHistory = readonly Call<TaskInput, TaskOutput>[];

export interface Play {
  /** For stores with a clock of their own: that one. */
  readonly clock?: ManualClock;
  readonly workers: number;
  readonly tasks: number;
  /** Calls of each worker. */
  readonly calls: number;
  readonly leaseMs: number;
  /** A number below `most`; the play is as random as this. */
  readonly pick: (most: number) => number;
}

/**
 * Workers that claim, renew, finish, give up and come late, on a few tasks, as fast as the store lets them; and for each
 * task the story of it, for the checker. Each worker has its own task list and asks one shared clock, which the
 * workers push on.
 */
export async function playOnStore(
  open: () => Promise<TaskStore>,
  { workers, tasks, calls, leaseMs, pick, clock = manualClock(START) }: Play,
): Promise<ReadonlyMap<TaskId, TaskHistory>> {
  const leader = createTaskList({ store: await open(), clock });
  const ids: TaskId[] = [];
  for (let n = 0; n < tasks; n += 1) ids.push((await leader.add({ subject: `Task ${n}` })).id);
  const stories = new Map(ids.map((id) => [id, [] as Call<TaskInput, TaskOutput>[]]));
  let moment = 0;
  const tick = () => {
    moment += 1;
    return moment;
  };

  async function work(name: string): Promise<void> {
    let asked = clock.now();
    const own: Clock = {
      now() {
        asked = clock.now();
        return asked;
      },
    };
    const list = createTaskList({ store: telling(await open(), own), clock: own });
    const fences = new Map<TaskId, number>();
    for (let n = 0; n < calls; n += 1) {
      const id = ids[pick(ids.length)] ?? "";
      const input = nextInput(name, fences.get(id), pick);
      const start = tick();
      const times = { asked: () => asked, now: () => clock.now() };
      const output = await ask(list, id, input, leaseMs, times);
      stories.get(id)?.push({ start, end: tick(), input, output });
      if (input.op === "claim" && output.ok && output.fence !== undefined)
        fences.set(id, output.fence);
      if (pick(4) === 0) clock.advance(pick(leaseMs));
    }
  }
  await Promise.all(Array.from({ length: workers }, (_, n) => work(`worker-${n}`)));
  return stories;
}

/** A store with a clock of its own tells the worker's, which remembers when it was asked. */
function telling(store: TaskStore, clock: Clock): TaskStore {
  const { direct } = store;
  if (direct === undefined) return store;
  return { ...store, direct: { ...direct, now: async () => clock.now() } };
}

/** A worker uses a fence it knows, however old: late calls are the point. */
function nextInput(worker: string, fence: number | undefined, pick: Play["pick"]): TaskInput {
  if (fence === undefined || pick(3) === 0) {
    return pick(6) === 0 ? { op: "reopen", worker } : { op: "claim", worker };
  }
  const ops = ["renew", "renew", "renew", "release", "fail", "complete"] as const;
  return { op: ops[pick(ops.length)] ?? "renew", worker, fence };
}

async function ask(
  list: TaskList,
  id: TaskId,
  { op, worker = "", fence = "any" }: TaskInput,
  leaseMs: number,
  times: { readonly asked: () => number; readonly now: () => number },
): Promise<TaskOutput> {
  const calls: Record<TaskInput["op"], () => Promise<Task>> = {
    claim: () => list.claim({ id, claimer: worker, leaseMs }),
    renew: () => list.renew({ id, fence, leaseMs }),
    release: () => list.release({ id, fence }),
    fail: () => list.fail({ id, fence, reason: worker }),
    complete: () => list.complete({ id, fence, result: worker }),
    reopen: () => list.reopen({ id }),
    expire: () => Promise.reject(new TypeError("nobody asks for it")),
  };
  try {
    const task = await calls[op]();
    const { leaseUntil } = task;
    return {
      ok: true,
      at: times.asked(),
      ...(task.fence === undefined ? {} : { fence: task.fence }),
      ...(leaseUntil === undefined ? {} : { leaseUntil: fromIso(leaseUntil) }),
    };
  } catch (error) {
    if (!(error instanceof SallyportError)) throw error;
    const { code } = error;
    // A store that judges leases in the write itself may have done so later than we asked for the time.
    return { ok: false, at: code === "claim_lost" ? times.now() : times.asked(), code };
  }
}
