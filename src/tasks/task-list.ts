import type { Task, TaskId, TaskStatus } from "../model/task.ts";
import type { ClaimTerms, TaskPage, TaskPageQuery, TaskStore } from "../store/tasks.ts";
import type { Clock } from "../util/clock.ts";
import type { Ids } from "../util/ids.ts";
import type { TaskDraft, TaskLinks } from "./new-task.ts";
import type { CompletionObserver } from "./observers.ts";
import type { Fence } from "./rules.ts";
import type { Stuck, StuckQuery, SweepOptions } from "./stuck.ts";

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
export interface Held extends Change {
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
