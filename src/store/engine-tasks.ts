import { SallyportError } from "../model/errors.ts";
import { checkName, isName } from "../model/names.ts";
import {
  cleanTask,
  TASK_BLOCKS,
  TASK_QUEUE,
  TASKS,
  type Task,
  type TaskId,
} from "../model/task.ts";
import { type Clock, stopwatch as realStopwatch, toIso } from "../util/clock.ts";
import type { JsonObject } from "../util/json.ts";
import {
  type Change,
  type Conditions,
  type EventPlan,
  NOW,
  type Row,
  type Step,
  type Table,
  type Values,
} from "./engine.ts";
import type { Hold } from "./operations.ts";
import { engineClaims, LIVE, OVER } from "./task-claims.ts";
import {
  CALLER,
  type ClaimRef,
  checkSwap,
  type DirectTasks,
  fits,
  missingTask,
  movedLane,
  NEVER,
  rowOfQueue,
  rowOfTask,
  type TaskCause,
  type TaskPage,
  type TaskPageQuery,
  type TaskStore,
  type TaskSwap,
  taskOf,
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
    // A renewal prolongs the lease or, while the stored one lasts longer, keeps it. The time may pass from one to the other.
    const ways = cause?.event === "task.renewed" ? [true, false, true] : [false];
    let refused = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const current = await stored(task.id);
      checkSwap(current?.task, { task, expectedVersion });
      if (current === undefined) throw missingTask(task.id);
      const lease = leaseTerms(current, cause, ways[refused] === true);
      const change = await swapChange(engine, current, next, cause, lease);
      const result = await engine.commit(change);
      if (result.committed) {
        const written = withLease(next, result.rows[0]);
        freed(written);
        return written;
      }
      // If everything else is as we saw it, it is the time that did not fit.
      const { current: met = {}, step } = result;
      const same = SEEN.every((column) => met[column] === current.queue?.[column]);
      if (step !== 0 || !same) continue;
      if (cause?.overLease === true) throw held(current.task);
      refused += 1;
      if (refused === ways.length && cause?.underLease === true) throw lost(current.task);
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
      // Other tasks may name it as a blocker before it exists.
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
    // It holds no resources: the caller that opened the store closes it.
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

function held({ id, status }: Task): SallyportError {
  const hint = "Its lease has not run out. Choose another task, or wait.";
  return new SallyportError("not_claimable", { id, status, why: `it is ${status}`, hint });
}

function outrun(id: TaskId): SallyportError {
  const hint = `Others changed it ${ROUNDS} times while this was asked for. Ask again.`;
  return new SallyportError("store_busy", { id, hint });
}

/** A task as it lies in the store: both rows, read together. */
export interface StoredTask {
  readonly task: Task;
  /** Undefined when it is completed. */
  readonly queue: Row | undefined;
}

/** What a swap asks of the lease, and the times that it writes: all by the clock of the transaction. */
interface LeaseTerms {
  readonly where: Conditions;
  /** For the row in the queue. */
  readonly set: Values;
}

function leaseTerms(
  { queue }: StoredTask,
  cause: TaskCause | undefined,
  prolongs: boolean,
): LeaseTerms {
  const { event, leaseMs, underLease, overLease } = cause ?? {};
  const where = { ...(underLease === true ? LIVE : {}), ...(overLease === true ? OVER : {}) };
  if (leaseMs === undefined) return { where, set: {} };
  const granted = { lease_until: { nowPlusMs: leaseMs } };
  if (event === "task.claimed") return { where, set: { claimed_at: NOW, ...granted } };
  const { lease_until: until = null, claimed_at: since = null } = queue ?? {};
  const set = prolongs ? granted : { lease_until: until };
  // A claim without a lease gets one. One that was made by hand may lack its time.
  if (until === NEVER || typeof until !== "number" || typeof since !== "number")
    return { where, set };
  // It gets longer from `until - leaseMs` on. A column has one test, so another time is moved by the difference.
  const turns = { nowPlusMs: since - (until - leaseMs) };
  const isTime = prolongs ? { atMost: turns } : { atLeast: { nowPlusMs: turns.nowPlusMs + 1 } };
  return { where: { ...where, claimed_at: isTime }, set };
}

/** The task with the times that were written. */
function withLease(task: Task, queue: Row | undefined): Task {
  if (task.status !== "claimed" || queue === undefined) return task;
  const { claimed_at: since, lease_until: until } = queue;
  return {
    ...task,
    ...(typeof since === "number" ? { claimedAt: toIso(since) } : {}),
    ...(typeof until === "number" && until !== NEVER ? { leaseUntil: toIso(until) } : {}),
  };
}

/** A swap as steps. `next` carries the version it will have, one above that of the stored task. */
async function swapChange(
  engine: TenantEngine,
  { task: current, queue }: StoredTask,
  next: Task,
  cause: TaskCause | undefined,
  lease: LeaseTerms,
): Promise<Change> {
  const { id } = next;
  const done = next.status === "completed";
  const { waits, steps: edges } = await edgesOf(engine, { current, queue, next });
  const version = current.version;
  const { claimed_at: claimedAt } = lease.set;
  const times = claimedAt === undefined ? {} : { claimed_at: claimedAt };
  const facts = { table: TASKS, id, set: { ...rowOfTask(next), ...times } };
  const steps: Step[] = [];
  if (queue === undefined) {
    steps.push({ op: "update", ...facts, where: { version } });
    if (!done) {
      // Completed and now open again, by hand: those who wait for it wait again.
      const dependents = await dependentsOf(engine, id);
      const row = { ...rowOfQueue(next, waits), dependents: dependents.length };
      steps.push({ op: "insert", table: TASK_QUEUE, id, row });
      steps.push(...(await recount(engine, dependents, 1)));
    }
  } else {
    // Others change these counts without a new version. If they did since we looked, we look again.
    const { waits: was = null, dependents = null } = queue;
    const where = { version, waits: was, ...lease.where };
    const entry = { table: TASK_QUEUE, id };
    if (done) steps.push({ op: "delete", ...entry, where: { ...where, dependents } });
    else {
      const set = { ...rowOfQueue(next, waits), ...lease.set };
      steps.push({ op: "update", ...entry, where, set });
    }
    steps.push({ op: "update", ...facts, where: {} });
    if (done && dependents !== 0) {
      steps.push(...(await recount(engine, await dependentsOf(engine, id), -1)));
    }
  }
  return { steps: merged([...steps, ...edges]), events: [eventOf(next, cause, "task.changed")] };
}

async function edgesOf(
  engine: TenantEngine,
  { current, queue, next }: { current: Task; queue: Row | undefined; next: Task },
) {
  const before = queue === undefined ? [] : (current.blockedBy ?? []);
  const after = next.status === "completed" ? [] : (next.blockedBy ?? []);
  const same = before.length === after.length && before.every((id) => after.includes(id));
  if (same) return { waits: Number(queue?.["waits"] ?? 0), steps: [] };
  return waitFor(engine, next.id, { before, after, fresh: new Map() });
}

/** New tasks as steps. `known` are those who waited already for a task that was not there. */
async function insertChange(
  engine: TenantEngine,
  swaps: readonly TaskSwap[],
  known: readonly TaskId[] = [],
): Promise<Change> {
  const fresh: Fresh = new Map(swaps.map(({ task }) => [task.id, task.status === "completed"]));
  const steps: Step[] = [];
  for (const { task } of swaps) {
    const { id } = task;
    steps.push({ op: "insert", table: TASKS, id, row: rowOfTask(task) });
    const done = task.status === "completed";
    if (done && known.length > 0) steps.push(...(await recount(engine, known, -1)));
    if (done) continue;
    const after = task.blockedBy ?? [];
    const waiting = await waitFor(engine, id, { before: [], after, fresh });
    const within = swaps.filter(({ task: { blockedBy = [] } }) => blockedBy.includes(id)).length;
    const row = { ...rowOfQueue(task, waiting.waits), dependents: known.length + within };
    steps.push({ op: "insert", table: TASK_QUEUE, id, row }, ...waiting.steps);
  }
  const events = swaps.map(({ task, cause }) => eventOf(task, cause, "task.added"));
  return { steps: merged(steps), events };
}

/** A change names each record once: where two steps would change the same row, one changes both. */
function merged(steps: readonly Step[]): readonly Step[] {
  const all: Step[] = [];
  const updates = new Map<string, number>();
  for (const step of steps) {
    if (step.op !== "update" || step.table !== TASK_QUEUE) {
      all.push(step);
      continue;
    }
    const index = updates.get(step.id);
    const first = index === undefined ? undefined : all[index];
    if (index === undefined || first?.op !== "update") {
      updates.set(step.id, all.push(step) - 1);
      continue;
    }
    const plus = added(first.set["dependents"]) + added(step.set["dependents"]);
    const set = { ...first.set, ...step.set, ...(plus === 0 ? {} : { dependents: { plus } }) };
    all[index] = { ...first, where: { ...first.where, ...step.where }, set };
  }
  return all;
}

function added(value: unknown): number {
  return typeof value === "object" && value !== null && "plus" in value ? Number(value.plus) : 0;
}

function eventOf(
  task: Task,
  { event, actor }: TaskCause = { event: "task.changed", actor: CALLER },
  fallback: "task.added" | "task.changed" = "task.changed",
): EventPlan {
  const { id, sessionId = "", version, fence } = task;
  const data: JsonObject = { version, ...(fence === undefined ? {} : { fence }) };
  if (fallback === "task.added") data["subject"] = task.subject.toWellFormed();
  if (task.failureReason !== undefined) data["reason"] = task.failureReason.toWellFormed();
  const type = event === "task.changed" ? fallback : event;
  return { type, subject: id, session: sessionId, actor, data };
}

/** So many rows are looked at for one page, and no more, however few of them have the status. */
const MOST_SCANNED = 2_000;
const CHUNK = 100;

/** One page over any engine. `reread` reads a task whose two rows were read at different moments. */
async function pageOfTasks(
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

/**
 * What must hold in the transaction that starts an effect for a session that works under this claim: the task is still
 * claimed with this fence, and its lease is not over by the store's clock. A worker that slept beyond its lease gets no
 * further than this, however late it wakes up.
 */
export function claimHold({ id, fence }: ClaimRef): Hold {
  return {
    refusal: "claim_lost",
    step: { op: "require", table: TASK_QUEUE, id, where: { fence, ...LIVE }, absent: "refuses" },
  };
}

interface Waiting {
  /** How many blockers are not completed. One that does not exist blocks too: it may be on its way. */
  readonly waits: number;
  readonly steps: readonly Step[];
}

/**
 * What has to be written when a task waits for `after` instead of `before`. `fresh` are tasks of the same change, which
 * count for themselves who waits for them.
 */
async function waitFor(
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
type Fresh = ReadonlyMap<TaskId, boolean>;

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
async function dependentsOf(engine: TenantEngine, id: TaskId): Promise<readonly TaskId[]> {
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

/** Those who wait for a task have one blocker fewer (-1) when it is completed, or one more when it is open again. */
async function recount(
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
