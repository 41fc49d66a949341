import { isSallyportError, SallyportError } from "../model/errors.ts";
import { checkName } from "../model/names.ts";
import { isTaskStatus, TASK_LIMITS, type Task, type TaskEvent } from "../model/task.ts";
import { CALLER, type ClaimTerms, pageFrom } from "../store/tasks.ts";
import { systemClock } from "../util/clock.ts";
import { createIds } from "../util/ids.ts";
import { systemRandom } from "../util/random.ts";
import { addTasks } from "./add-tasks.ts";
import { blockTask } from "./block-task.ts";
import { claimBest, claimedBy } from "./claim-next.ts";
import { openBlockersIn } from "./dependencies.ts";
import { checkLinks, linksOf } from "./new-task.ts";
import { announce, observe } from "./observers.ts";
import {
  claimTask,
  completeTask,
  failTask,
  isExpired,
  linkTask,
  releaseTask,
  renewClaim,
  reopenTask,
} from "./rules.ts";
import { findStuck, sweep, writeExpiry } from "./stuck.ts";
import { checkLease, checkNames, checkProse, checkReason } from "./task-checks.ts";
import type { Held, TaskList, TaskListOptions } from "./task-list.ts";

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
