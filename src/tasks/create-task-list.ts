import { isSallyportError, SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import {
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
  pageFrom,
  type TaskPage,
  type TaskPageQuery,
  type TaskStore,
} from "../store/tasks.ts";
import { type Clock, systemClock } from "../util/clock.ts";
import { createIds, type Ids } from "../util/ids.ts";
import { systemRandom } from "../util/random.ts";
import {
  addTasks,
  blockTask,
  checkLease,
  checkLinks,
  checkNames,
  checkProse,
  checkReason,
  linksOf,
  openBlockersIn,
  type TaskDraft,
  type TaskLinks,
} from "./add-tasks.ts";
import {
  claimBest,
  claimedBy,
  findStuck,
  type Stuck,
  type StuckQuery,
  type SweepOptions,
  sweep,
  writeExpiry,
} from "./claim-next.ts";
import {
  claimTask,
  completeTask,
  type Fence,
  failTask,
  isExpired,
  linkTask,
  releaseTask,
  renewClaim,
  reopenTask,
} from "./rules.ts";
import { announce, type CompletionObserver, observe } from "./watchdog.ts";

type Rule = (task: Task, now: number) => Task;

export function createTaskList(options: TaskListOptions): TaskList {
  const { store, clock = systemClock } = options;
  const { ids = createIds({ clock, random: systemRandom }), onObserverError = warn } = options;
  const { direct } = store;
  const now = async () => (direct === undefined ? clock.now() : direct.now());

  /** Reads, asks the rule, swaps: once. */
  async function change(
    { id, by, fence }: Held,
    event: TaskEvent,
    rule: Rule,
    guard?: (task: Task) => Promise<void>,
  ): Promise<Task> {
    if (by !== undefined) checkName("name", by);
    const task = await store.get(id);
    let next = await apply(rule, task);
    if (guard !== undefined) {
      await guard(task);
      // The guard may have taken its time, and the lease may be over by now.
      next = await apply(rule, task);
    }
    const holder = typeof fence === "number" ? task.claimer : undefined;
    // Also who was asleep since it looked must not write under a lease that is over.
    const lease = typeof fence === "number" && task.leaseUntil !== undefined;
    const cause = { event, actor: by ?? holder ?? CALLER };
    const underLease = lease ? ({ underLease: true } as const) : {};
    return store.compareAndSwap(next, task.version, { ...cause, ...underLease });
  }

  /** The late holder is often the first to see that its lease is over. Once that is written, no clock revives it. */
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

    async claim({ id, ...terms }) {
      checkTerms(terms);
      const task = await store.get(id);
      const open = await openBlockersIn(store, task);
      const next = claimTask(task, terms, { open, now: await now() });
      return store.compareAndSwap(next, task.version, claimedBy(terms));
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
      checkReason(reason);
      return change(held, "task.released", (task, at) => releaseTask(task, { fence, reason }, at));
    },
    async complete(held) {
      const { id, by, fence, result } = held;
      checkProse("result", result);
      if (by !== undefined) checkName("name", by);
      // With a guard, the task must be looked at first.
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
      checkReason(reason);
      return change(held, "task.failed", (task, at) => failTask(task, { fence, reason }, at));
    },
    async reopen(request) {
      const { by = "", reason = "" } = request;
      checkReason(reason);
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
      return (await store.page?.(query)) ?? pageFrom(await store.list(), query);
    },
    async findByStatus(status) {
      checkStatus(status);
      return (await store.list()).filter((task) => task.status === status);
    },
    findStuck: async (query) => findStuck(await store.list(), query, await now()),
    sweep: (sweepOptions = {}) => sweep(store, sweepOptions, now),

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

/** Fails closed: whatever is not a plain `true` is a no, and so is an error. */
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
 * The shared list of tasks. All rules are here and hold for any store; what makes them safe between workers is the
 * store's compare-and-swap, not a lock. Any agent, worker or leader, may make any call.
 *
 * A call that loses a race throws concurrent_modification (somebody wrote in between) or what it then found; both mean
 * "read again, then retry or choose another", and no call retries by itself. What the store throws comes out unchanged.
 */
export interface TaskList extends AsyncDisposable {
  /** A pending task, whole. Throws invalid_input, payload_too_large, not_found (a blocker), already_exists. */
  add(draft: TaskDraft): Promise<Task>;
  /**
   * Several tasks, which may block each other by their keys. All or none where the store can; otherwise one by one, and
   * what waits for a missing one stays blocked. Throws as `add`, and invalid_input for tasks that wait in a circle.
   */
  addAll(drafts: readonly BatchDraft[]): Promise<readonly Task[]>;
  /** Only a pending task, or one whose lease is over. Throws not_claimable, concurrent_modification, not_found. */
  claim(request: { readonly id: TaskId } & ClaimTerms): Promise<Task>;
  /** The best task that this claimer can have: highest priority, then oldest. Undefined when there is none. */
  claimNext(terms: ClaimTerms): Promise<Task | undefined>;
  /** The same for several at once, best first; fewer than `limit`, or none, when there are no more. */
  claimBatch(terms: ClaimTerms & { readonly limit: number }): Promise<readonly Task[]>;
  /** Keeps a claim for so long from now. Throws claim_lost: then stop working. */
  renew(request: Held & { readonly leaseMs: number }): Promise<Task>;
  /** Gives a claimed task back. Throws claim_lost, illegal_transition. */
  release(request: Held & { readonly reason?: string }): Promise<Task>;
  /** From claimed, or straight from pending. Throws already_completed, illegal_transition (failed), claim_lost, dependency_denied. */
  complete(request: Held & { readonly result: string }): Promise<Task>;
  /** From pending or claimed. Throws already_completed, illegal_transition (failed: its first reason stands), claim_lost. */
  fail(request: Held & { readonly reason: string }): Promise<Task>;
  /** Makes a failed task claimable again and keeps what went wrong. Throws already_completed, illegal_transition. */
  reopen(request: Change & { readonly reason?: string }): Promise<Task>;
  /** Ties a task to its session, delegation and decisions; decisions are added to those it has. */
  link(request: Held & TaskLinks): Promise<Task>;
  /** Sets what a pending task waits for. Throws invalid_input for a circle. */
  block(request: Change & { readonly blockedBy: readonly TaskId[] }): Promise<Task>;
  /** Throws not_found. */
  get(id: TaskId): Promise<Task>;
  /** One page, oldest first. It may hold fewer than asked for, also none, and still have a next one. Throws invalid_input. */
  page(query: TaskPageQuery): Promise<TaskPage>;
  /** All tasks, oldest first. */
  list(): Promise<readonly Task[]>;
  findByStatus(status: TaskStatus): Promise<readonly Task[]>;
  /** What will not move by itself, and why. */
  findStuck(query: StuckQuery): Promise<readonly Stuck[]>;
  /** Writes down every lease that is over, so that the tasks are pending again. Answers with those it changed. */
  sweep(options?: SweepOptions): Promise<readonly Task[]>;
  /** Calls back after each completion through any list over this store. Answers with the way to stop it. */
  onCompleted(observer: CompletionObserver): () => void;
  store(): TaskStore;
  /** Closes the store. */
  close(): Promise<void>;
}

/** A task, and under which claim it is written. */
interface Held extends Change {
  readonly fence?: Exclude<Fence, undefined>;
}

/** A task, and who changes it, for the trail. Who shows a fence is its claimer unless it says otherwise. */
export interface Change {
  readonly id: TaskId;
  readonly by?: string;
}

export interface BatchDraft extends TaskDraft {
  /** A name by which others in the same batch can say that they wait for this one. */
  readonly key?: string;
}

/** Shape: callback. */
export type MayComplete = (task: Task) => Promise<true | string> | true | string;

export interface TaskListOptions {
  readonly store: TaskStore;
  /** Decides about leases, unless the store has a clock of its own. All who share a store must tell the same time. */
  readonly clock?: Clock;
  readonly ids?: Ids;
  /**
   * Says whether a task may be completed: `true`, or why not. Anything but `true`, and any error, is a no. Shape: callback,
   * asked before each completion.
   */
  readonly mayComplete?: MayComplete;
  /** What an observer threw. By default a warning of the process. Shape: push. */
  readonly onObserverError?: (error: unknown) => void;
}
