import { isSallyportError, SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import {
  cleanTask,
  isTaskStatus,
  TASK_LIMITS,
  type Task,
  type TaskEvent,
  type TaskId,
  type TaskStatus,
} from "../model/task.ts";
import {
  CALLER,
  type ClaimTerms,
  checkSwap,
  type Decide,
  missingTask,
  type TaskPage,
  type TaskPageQuery,
  type TaskStore,
  taskPageFrom,
} from "../store/tasks.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { createIds, type Ids } from "../util/ids.ts";
import { systemRandom } from "../util/random.ts";
import {
  addTasks,
  blockTask,
  checkLease,
  checkLinks,
  checkProse,
  checkTaskReason,
  linksOf,
  type TaskDraft,
  type TaskLinks,
} from "./add-tasks.ts";
import { openBlockersIn } from "./blockers.ts";
import { type Imported, importTasks } from "./carry-over.ts";
import {
  checkNames,
  claimBest,
  claimedBy,
  claimTask,
  completeTask,
  type Fence,
  failTask,
  findStuck,
  isExpired,
  linkTask,
  releaseTask,
  renewClaim,
  reopenTask,
  type Stuck,
  type StuckQuery,
  type SweepOptions,
  sweepTasks,
  writeExpiry,
} from "./rules.ts";
import { announce, type CompletionObserver, observe } from "./watchdog.ts";

type Rule = (task: Task, now: number) => Task;

export function createTaskList(options: TaskListOptions): TaskList {
  const { store, clock = systemClock } = options;
  const { ids = createIds({ clock, random: systemRandom }), onObserverError = warn } = options;
  const { direct } = store;
  const now = async () => (direct === undefined ? clock.now() : direct.now());

  /** Reads, applies the rule, swaps: once. */
  async function change(
    { id, by, fence, leaseMs }: Held & { readonly leaseMs?: number },
    event: TaskEvent,
    rule: Rule,
    guard?: (task: Task) => Promise<void>,
  ): Promise<Task> {
    if (by !== undefined) checkName("name", by);
    const task = await store.get(id);
    let next = await apply(rule, task);
    if (guard !== undefined) {
      await guard(task);
      // The lease may have ended while the guard ran.
      next = await apply(rule, task);
    }
    const holder = typeof fence === "number" ? task.claimer : undefined;
    // A process that was paused since it read the task must not write after its lease.
    const isLeased = typeof fence === "number" && task.leaseUntil !== undefined;
    return store.compareAndSwap(next, task.version, {
      event,
      actor: by ?? holder ?? CALLER,
      ...(isLeased ? { underLease: true } : {}),
      ...(leaseMs === undefined ? {} : { leaseMs }),
    });
  }

  /** A late holder is often the first to see that its lease has ended. Once that is stored, no clock revives it. */
  async function apply(rule: Rule, task: Task): Promise<Task> {
    const at = await now();
    try {
      return rule(task, at);
    } catch (error) {
      if (isSallyportError(error, "claim_lost") && isExpired(task, at)) {
        await writeExpiry(store, task, at);
      }
      throw error;
    }
  }

  return {
    async add(draft) {
      const [task] = await addTasks({ store, ids, now }, [draft]);
      return task as Task;
    },
    addAll: (drafts) => addTasks({ store, ids, now }, drafts),
    importAll: (tasks, by) => importTasks(store, tasks, by),

    async claim({ id, ...terms }) {
      checkTerms(terms);
      const task = await store.get(id);
      const open = await openBlockersIn(store, task);
      const next = claimTask(task, terms, { open, now: await now() });
      return store.compareAndSwap(next, task.version, claimedBy(terms, task));
    },
    async claimNext(terms) {
      checkTerms(terms);
      const [task] = await claimBest(store, terms, 1, now);
      return task;
    },
    async claimBatch({ limit, ...terms }) {
      checkTerms(terms);
      checkLimit(limit);
      return claimBest(store, terms, limit, now);
    },
    async renew(held) {
      const { id, by, fence, leaseMs } = held;
      checkLease(leaseMs);
      if (by !== undefined) checkName("name", by);
      if (typeof fence === "number") {
        const renewed = await direct?.renew({ id, fence }, leaseMs, by);
        if (renewed !== undefined) return renewed;
      }
      return change(held, "task.renewed", (task, at) => renewClaim(task, { fence, leaseMs }, at));
    },
    async release(held) {
      const { fence, reason = "" } = held;
      checkTaskReason(reason);
      return change(held, "task.released", (task, at) => releaseTask(task, { fence, reason }, at));
    },
    async complete(held) {
      const { id, by, fence, result } = held;
      checkProse("result", result);
      if (by !== undefined) checkName("name", by);
      // A guard must see the task first.
      const known = typeof fence === "number" && options.mayComplete === undefined;
      let task = known ? await direct?.complete({ id, fence }, result, by) : undefined;
      if (task === undefined) {
        const rule: Rule = (open, at) => completeTask(open, { fence, result }, at);
        task = await change(held, "task.completed", rule, (open) => askGuard(options, open));
      }
      announce(store, task, onObserverError);
      return task;
    },
    async fail(held) {
      const { fence, reason } = held;
      checkTaskReason(reason);
      return change(held, "task.failed", (task, at) => failTask(task, { fence, reason }, at));
    },
    async reopen(request) {
      const { by = "", reason = "" } = request;
      checkTaskReason(reason);
      return change(request, "task.reopened", (task, at) => reopenTask(task, { by, reason }, at));
    },
    async link(held) {
      const { fence } = held;
      checkLinks(held);
      const links = linksOf(held);
      return change(held, "task.linked", (task, at) => linkTask(task, { fence, links }, at));
    },
    block: ({ id, blockedBy, by = CALLER }) => blockTask(store, id, blockedBy, by),

    get: (id) => store.get(id),
    list: () => store.list(),
    async page(query) {
      if (query.status !== undefined) checkStatus(query.status);
      checkLimit(query.limit);
      return (await store.page?.(query)) ?? taskPageFrom(await store.list(), query);
    },
    async findByStatus(status) {
      checkStatus(status);
      return (await store.list()).filter((task) => task.status === status);
    },
    findStuck: async (query) => findStuck(await store.list(), query, await now()),
    sweep: (sweepOptions = {}) => sweepTasks(store, sweepOptions, now),

    onCompleted: (observer) => observe(store, observer),
    store: () => store,
    close: () => store.close(),
    [Symbol.asyncDispose]: () => store.close(),
  };
}

function checkTerms({ claimer, roles = [], leaseMs }: ClaimTerms): void {
  checkName("claimer", claimer);
  checkNames("role", roles, TASK_LIMITS.blockers);
  if (leaseMs !== undefined) checkLease(leaseMs);
}

function checkLimit(limit: number): void {
  if (Number.isSafeInteger(limit) && limit > 0 && limit <= TASK_LIMITS.batch) return;
  const hint = `Ask for one to ${TASK_LIMITS.batch} tasks.`;
  throw new SallyportError("invalid_input", { what: "limit", hint });
}

function checkStatus(status: string): void {
  if (isTaskStatus(status)) return;
  const hint = "Use one of the four status names.";
  throw new SallyportError("invalid_input", { what: "status", hint });
}

/** Fails closed: an error, or anything but `true`, means no. */
async function askGuard({ mayComplete }: TaskListOptions, task: Task): Promise<void> {
  if (mayComplete === undefined) return;
  const { id } = task;
  let answer: unknown;
  try {
    answer = await mayComplete(task);
  } catch (cause) {
    throw new SallyportError("dependency_denied", { id, hint: "The guard itself failed." }, cause);
  }
  if (answer === true) return;
  const hint = typeof answer === "string" ? answer : "The guard did not say yes.";
  throw new SallyportError("dependency_denied", { id, hint });
}

function warn(error: unknown): void {
  process.emitWarning(
    `An observer of completed tasks failed: ${String(error)}`,
    "SallyportWarning",
  );
}

/**
 * The shared list of tasks. All rules are here and hold for any store; concurrent workers are safe because of the store's
 * compare-and-swap, not a lock. Any agent may make any call.
 *
 * A call that loses a race throws concurrent_modification or the error of the changed task: read again, then retry or choose
 * another task. No call retries by itself. Errors of the store are passed on unchanged.
 */
export interface TaskList extends AsyncDisposable {
  /** Returns the pending task. Throws invalid_input, payload_too_large, not_found (a blocker), already_exists. */
  add(draft: TaskDraft): Promise<Task>;
  /**
   * Several tasks, which may block each other by their keys. All or none if the store has transactions; otherwise one by one,
   * and a task whose blocker is missing stays blocked. Throws as `add`, and invalid_input for a cycle.
   */
  addAll(drafts: readonly BatchDraft[]): Promise<readonly Task[]>;
  /**
   * Adds the tasks that the list does not have, in their order, as they are but in their first version. A claim stays with
   * its claimer, under a new fence. Not one transaction: after a failure, import the same tasks again. Throws invalid_input
   * and payload_too_large, and then nothing was added.
   */
  importAll(tasks: readonly Task[], by: string): Promise<Imported>;
  /** Claims a pending task, or one whose lease has ended. Throws not_claimable, concurrent_modification, not_found. */
  claim(request: { readonly id: TaskId } & ClaimTerms): Promise<Task>;
  /** Claims the best available task: highest priority, then oldest. Undefined when there is none. */
  claimNext(terms: ClaimTerms): Promise<Task | undefined>;
  /** Claims up to `limit` tasks, best first. */
  claimBatch(terms: ClaimTerms & { readonly limit: number }): Promise<readonly Task[]>;
  /** Extends a claim by this time from now. Throws claim_lost: then stop working. */
  renew(request: Held & { readonly leaseMs: number }): Promise<Task>;
  /** Releases a claimed task. Throws claim_lost, illegal_transition. */
  release(request: Held & { readonly reason?: string }): Promise<Task>;
  /** From claimed or pending. Throws already_completed, illegal_transition (failed), claim_lost, dependency_denied. */
  complete(request: Held & { readonly result: string }): Promise<Task>;
  /** From pending or claimed. Throws already_completed, illegal_transition (failed: keeps its first reason), claim_lost. */
  fail(request: Held & { readonly reason: string }): Promise<Task>;
  /** Makes a failed task claimable again and keeps its failures. Throws already_completed, illegal_transition. */
  reopen(request: TaskChange & { readonly reason?: string }): Promise<Task>;
  /** Links a task to its session, delegation and decisions; decisions are added to the existing ones. */
  link(request: Held & TaskLinks): Promise<Task>;
  /** Sets the blockers of a pending task. Throws invalid_input for a cycle. */
  block(request: TaskChange & { readonly blockedBy: readonly TaskId[] }): Promise<Task>;
  /** Throws not_found. */
  get(id: TaskId): Promise<Task>;
  /** One page, oldest first. It may have fewer tasks than the limit, or none, and still a next page. Throws invalid_input. */
  page(query: TaskPageQuery): Promise<TaskPage>;
  /** All tasks, oldest first. */
  list(): Promise<readonly Task[]>;
  findByStatus(status: TaskStatus): Promise<readonly Task[]>;
  /** Tasks that will not progress by themselves, and why. */
  findStuck(query: StuckQuery): Promise<readonly Stuck[]>;
  /** Makes tasks with an expired lease pending again. Returns those it changed. */
  sweep(options?: SweepOptions): Promise<readonly Task[]>;
  /** Calls back after each completion through any list over this store. Returns a function that stops it. */
  onCompleted(observer: CompletionObserver): () => void;
  store(): TaskStore;
  /** Closes the store. */
  close(): Promise<void>;
}

/** A task, and the claim under which it is written. */
interface Held extends TaskChange {
  readonly fence?: Exclude<Fence, undefined>;
}

/** A task, and who changes it, for the audit log. Default with a fence: the claimer. */
export interface TaskChange {
  readonly id: TaskId;
  readonly by?: string;
}

export interface BatchDraft extends TaskDraft {
  /** A name by which other tasks of the batch can refer to this one as a blocker. */
  readonly key?: string;
}

/** Shape: callback. */
export type MayComplete = (task: Task) => Promise<true | string> | true | string;

export interface TaskListOptions {
  readonly store: TaskStore;
  /** For leases, unless the store has its own clock. All processes that share a store need the same time. */
  readonly clock?: Clock;
  readonly ids?: Ids;
  /** Whether a task may be completed: `true`, or why not. An error means no. Shape: callback, before each completion. */
  readonly mayComplete?: MayComplete;
  /** Receives what an observer threw. Default: a warning of the process. Shape: push. */
  readonly onObserverError?: (error: unknown) => void;
}

/** For one process and without persistence: tests, demos, short-lived lists. */
export function memoryTaskStore(): TaskStore {
  // A map keeps the order of insertion, which is the order of age.
  const tasks = new Map<TaskId, Task>();

  /** Synchronous from the first read to the last write, so nothing can interleave. */
  function transact(decide: Decide): readonly Task[] {
    const written = new Map<TaskId, Task>();
    for (const { task, expectedVersion } of decide(tasks)) {
      const clean = cleanTask(task);
      checkSwap(written.get(clean.id) ?? tasks.get(clean.id), { task: clean, expectedVersion });
      written.set(clean.id, { ...clean, version: expectedVersion + 1 });
    }
    for (const [id, task] of written) tasks.set(id, task);
    return [...written.values()].map(cleanTask);
  }

  return {
    async get(id) {
      const task = tasks.get(id);
      if (task === undefined) throw missingTask(id);
      return cleanTask(task);
    },
    async compareAndSwap(task, expectedVersion) {
      const [stored] = transact(() => [{ task, expectedVersion }]);
      return stored as Task;
    },
    list: async () => [...tasks.values()].map(cleanTask),
    async page(query) {
      const page = taskPageFrom([...tasks.values()], query);
      return { ...page, tasks: page.tasks.map(cleanTask) };
    },
    transact: async (decide) => transact(decide),
    async close() {},
  };
}
