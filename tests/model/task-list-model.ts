export interface ModelTask {
  status: "pending" | "claimed" | "completed" | "failed";
  version: number;
  fence: number | undefined;
  claimer: string;
  leaseUntil: number;
  readonly priority: number;
  blockedBy: readonly number[];
}

export type Shown = number | "any" | undefined;

/** The shared list as its documentation tells it: one live claim, fences that grow, nothing under an old one. */
export class TaskListModel {
  readonly tasks: ModelTask[] = [];

  add(priority: number, blockers: readonly number[]): string {
    if (blockers.some((index) => this.tasks[index] === undefined)) return "!not_found";
    const blockedBy = [...new Set(blockers)];
    const fresh = { version: 1, fence: undefined, claimer: "", leaseUntil: Infinity } as const;
    this.tasks.push({ status: "pending", ...fresh, priority, blockedBy });
    return "pending";
  }

  claim(which: number, claimer: string, leaseMs: number, now: number): string {
    const task = this.tasks[which];
    if (task === undefined) return "!not_found";
    if (!this.isFree(task, now)) return "!not_claimable";
    const leaseUntil = now + leaseMs;
    write(task, { status: "claimed", claimer, leaseUntil, fence: task.version + 1 });
    return "claimed";
  }

  renew(which: number, fence: Shown, leaseMs: number, now: number): string {
    return this.#held(which, fence, now, ["claimed"], (task) => {
      write(task, {
        leaseUntil: Math.max(task.leaseUntil === Infinity ? 0 : task.leaseUntil, now + leaseMs),
      });
    });
  }

  end(which: number, fence: Shown, as: "completed" | "failed", now: number): string {
    const task = this.tasks[which];
    if (task?.status === "completed") return "!already_completed";
    if (task?.status === "failed") return "!illegal_transition";
    return this.#held(which, fence, now, ["pending", "claimed"], (open) => {
      write(open, { status: as, leaseUntil: Infinity });
    });
  }

  release(which: number, fence: Shown, now: number): string {
    return this.#held(which, fence, now, ["claimed"], free);
  }

  reopen(which: number): string {
    const task = this.tasks[which];
    if (task === undefined) return "!not_found";
    if (task.status === "completed") return "!already_completed";
    if (task.status !== "failed") return "!illegal_transition";
    free(task);
    return "pending";
  }

  block(which: number, blockers: readonly number[]): string {
    const task = this.tasks[which];
    if (task === undefined || blockers.some((index) => this.tasks[index] === undefined)) {
      return "!not_found";
    }
    if (task.status !== "pending") return "!illegal_transition";
    const before = task.blockedBy;
    task.blockedBy = [...new Set(blockers)];
    if (this.#waitsFor(which, which, new Set())) {
      task.blockedBy = before;
      return "!invalid_input";
    }
    write(task, {});
    return "pending";
  }

  /** An ended lease, recorded by the first process that sees it. */
  expire(which: number, now: number): void {
    const task = this.tasks[which];
    if (task !== undefined && isOver(task, now)) free(task);
  }

  overdue(now: number): number[] {
    return this.tasks.flatMap((task, index) => (isOver(task, now) ? [index] : []));
  }

  isFree(task: ModelTask, now: number): boolean {
    if (task.status !== "pending" && !isOver(task, now)) return false;
    return task.blockedBy.every((index) => this.tasks[index]?.status === "completed");
  }

  #held(
    which: number,
    fence: Shown,
    now: number,
    from: readonly string[],
    change: (task: ModelTask) => void,
  ): string {
    const task = this.tasks[which];
    if (task === undefined) return "!not_found";
    if (!holds(task, fence, now)) {
      this.expire(which, now);
      return "!claim_lost";
    }
    if (!from.includes(task.status)) return "!illegal_transition";
    change(task);
    return task.status;
  }

  #waitsFor(start: number, goal: number, seen: Set<number>): boolean {
    return (this.tasks[start]?.blockedBy ?? []).some((next) => {
      if (next === goal) return true;
      if (seen.has(next)) return false;
      return this.#waitsFor(next, goal, seen.add(next));
    });
  }
}

function isOver({ status, leaseUntil }: ModelTask, now: number): boolean {
  return status === "claimed" && now >= leaseUntil;
}

function holds(task: ModelTask, fence: Shown, now: number): boolean {
  if (fence === "any") return true;
  if (fence === undefined) return task.status !== "claimed" || task.leaseUntil === Infinity;
  return task.status === "claimed" && task.fence === fence && !isOver(task, now);
}

function free(task: ModelTask): void {
  write(task, { status: "pending", claimer: "", leaseUntil: Infinity });
}

function write(task: ModelTask, change: Partial<ModelTask>): void {
  Object.assign(task, change, { version: task.version + 1 });
}
