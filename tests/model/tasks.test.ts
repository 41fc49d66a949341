import assert from "node:assert/strict";
import fc from "fast-check";
import { TASK_STATUSES, type Task } from "../../src/model/task.ts";
import { createTaskList, type TaskList } from "../../src/tasks/create-task-list.ts";

import { choices, chosen, command, type Ground, prove, said, tenantOf } from "./prove.ts";
import { type ModelTask, type Shown, TaskListModel } from "./task-list-model.ts";

interface Real {
  readonly ground: Ground;
  /** One in every other sequence; else two, of two processes where the engine allows. */
  readonly lists: readonly TaskList[];
  readonly ids: string[];
}

/** Which fence is given: that of the claim, an older one, one that was never used, none, or the right to end any claim. */
type Fencing = "own" | "old" | "future" | "none" | "any";

interface Held {
  readonly which: number;
  readonly fencing: Fencing;
  readonly place: number;
}

const place = fc.nat({ max: 1 });
const workers = fc.constantFrom("worker:a", "worker:b");
const leases = fc.constantFrom(1_000, 5_000, Infinity);
const held = fc.record<Held>({
  which: choices,
  fencing: fc.constantFrom("own", "own", "own", "own", "old", "future", "none", "any"),
  place,
});
const blockers = fc.array(choices, { maxLength: 2 });
const priorities = fc.nat({ max: 2 });
const statusOf = ({ status }: Task) => status;

type Model = TaskListModel;

/** The same call under a claim on both sides. */
function underClaim(
  name: string,
  call: (list: TaskList, claim: { id: string; fence?: number | "any" }) => Promise<Task>,
  expected: (model: Model, which: number, fence: Shown, at: number) => string,
) {
  return command(name, held, async (model: Model, real: Real, choice) => {
    const which = chosen(choice.which, real.ids.length);
    const own = model.tasks[which]?.fence ?? 0;
    const fences = { own, old: own - 1, future: own + 1, none: undefined, any: "any" as const };
    const fence = fences[choice.fencing];
    const claimed = { id: idOf(real, which), ...(fence === undefined ? {} : { fence }) };
    const answer = await said(call(listAt(real, choice.place), claimed), statusOf);
    assert.equal(answer, expected(model, which, fence, now(real)));
  });
}

prove<Model, Real>({
  what: "tasks: claims, leases, fences, dependencies [G15]",
  commands: [
    command("add", fc.tuple(priorities, blockers), add),
    command("add", fc.tuple(priorities, fc.constant<number[]>([])), add),
    command("claim", fc.tuple(choices, workers, leases, place), claim),
    command("claimNext", fc.tuple(workers, leases, place), claimNext),
    command("claimNext", fc.tuple(workers, leases, place), claimNext),
    underClaim(
      "renew",
      (list, claimed) => list.renew({ ...claimed, leaseMs: 2_000 }),
      (model, which, fence, at) => model.renew(which, fence, 2_000, at),
    ),
    underClaim(
      "complete",
      (list, claimed) => list.complete({ ...claimed, result: "ok" }),
      (model, which, fence, at) => model.end(which, fence, "completed", at),
    ),
    underClaim(
      "fail",
      (list, claimed) => list.fail({ ...claimed, reason: "no" }),
      (model, which, fence, at) => model.end(which, fence, "failed", at),
    ),
    underClaim(
      "release",
      (list, claimed) => list.release(claimed),
      (model, which, fence, at) => model.release(which, fence, at),
    ),
    underClaim(
      "reopen",
      (list, { id }) => list.reopen({ id }),
      (model, which) => model.reopen(which),
    ),
    command("block", fc.tuple(choices, blockers, place), block),
    command("sweep", place, sweep),
    command("wait", fc.constantFrom(1, 999, 1_000, 5_000), async (_, real: Real, ms) => {
      real.ground.clock.advance(ms);
    }),
  ],
  seen: ({ tasks }) => tasks.map(({ status }) => status),
  mustSee: TASK_STATUSES,
  begin(ground) {
    const open = (at: number) =>
      createTaskList({ store: tenantOf(ground, at).tasks, clock: ground.clock });
    const lists = ground.number % 2 === 0 ? [open(0)] : [open(0), open(1)];
    return { model: new TaskListModel(), real: { ground, lists, ids: [] } };
  },
  async end(model, real) {
    const stored = await tenantOf(real.ground, 1).tasks.list();
    assert.equal(stored.length, model.tasks.length);
    for (const [index, task] of model.tasks.entries()) {
      const found = stored.find(({ id }) => id === real.ids[index]);
      assert.deepEqual(viewOf(found), wantedOf(task, real));
    }
  },
});

const MOST = 6;

async function add(model: Model, real: Real, [priority, by]: [number, number[]]) {
  if (real.ids.length >= MOST) return;
  const waitsFor = by.map((choice) => chosen(choice, real.ids.length));
  const blockedBy = waitsFor.map((index) => idOf(real, index));
  const subject = `task ${real.ids.length}`;
  const call = listAt(real, priority).add({ subject, priority, blockedBy });
  const answer = await said(call, ({ id, status }) => {
    real.ids.push(id);
    return status;
  });
  assert.equal(answer, model.add(priority, waitsFor));
}

async function block(model: Model, real: Real, [choice, by, at]: [number, number[], number]) {
  const index = chosen(choice, real.ids.length);
  const waitsFor = by.map((one) => chosen(one, real.ids.length));
  const blockedBy = waitsFor.map((one) => idOf(real, one));
  const call = listAt(real, at).block({ id: idOf(real, index), blockedBy });
  assert.equal(await said(call, statusOf), model.block(index, waitsFor));
}

async function sweep(model: Model, real: Real, at: number) {
  const swept = await listAt(real, at).sweep();
  const late = model.overdue(now(real));
  const ids = late.map((index) => idOf(real, index));
  assert.deepEqual(swept.map(({ id }) => id).toSorted(), ids.toSorted());
  for (const index of late) model.expire(index, now(real));
}

async function claim(
  model: Model,
  real: Real,
  [choice, claimer, leaseMs, at]: [number, string, number, number],
) {
  const index = chosen(choice, real.ids.length);
  const terms = { claimer, ...leaseIn(leaseMs) };
  const call = listAt(real, at).claim({ id: idOf(real, index), ...terms });
  assert.equal(await said(call, statusOf), model.claim(index, claimer, leaseMs, now(real)));
}

/** The best one that is free. A lease that is over may be written down first, or be left to who finds nothing else. */
async function claimNext(
  model: Model,
  real: Real,
  [claimer, leaseMs, at]: [string, number, number],
) {
  const time = now(real);
  const free = model.tasks.filter((task) => model.isFree(task, time));
  const got = await listAt(real, at).claimNext({ claimer, ...leaseIn(leaseMs) });
  const { tasks } = tenantOf(real.ground, 0);
  for (const index of model.overdue(time)) {
    const { version } = await tasks.get(idOf(real, index));
    if (version > (model.tasks[index]?.version ?? 0)) model.expire(index, time);
  }
  if (got === undefined) {
    assert.equal(free.length, 0, "something was free, and nothing was given");
    return;
  }
  const index = real.ids.indexOf(got.id);
  const pending = model.tasks.filter(
    (task) => task.status === "pending" && model.isFree(task, time),
  );
  const best = pending.toSorted((a, b) => b.priority - a.priority)[0];
  // Two lists may each know only of what they added themselves, for a moment; what they give must be free all the same.
  if (real.lists.length === 1) assert.equal(index, best && model.tasks.indexOf(best));
  assert.ok(pending.includes(model.tasks[index] as ModelTask), "what was given was not free");
  assert.equal(model.claim(index, claimer, leaseMs, time), "claimed");
}

function viewOf(task: Task | undefined) {
  const { status, version, fence, claimer = "", leaseUntil, blockedBy = [] } = task ?? ({} as Task);
  const until = leaseUntil === undefined ? Infinity : Date.parse(leaseUntil);
  return { status, version, fence, claimer, until, blockedBy };
}

/** Who completed or failed it stays written on it. */
function wantedOf(task: ModelTask, { ids }: Real) {
  const { status, version, fence, claimer, leaseUntil, blockedBy } = task;
  const blockers_ = blockedBy.map((index) => ids[index] ?? "");
  return { status, version, fence, claimer, until: leaseUntil, blockedBy: blockers_ };
}

function leaseIn(leaseMs: number): { leaseMs?: number } {
  return leaseMs === Infinity ? {} : { leaseMs };
}

function listAt({ lists }: Real, at: number): TaskList {
  const list = lists[at % lists.length];
  assert.ok(list !== undefined);
  return list;
}

const idOf = ({ ids }: Real, index: number) => ids[index] ?? "nowhere";
const now = ({ ground }: Real) => ground.clock.now();
