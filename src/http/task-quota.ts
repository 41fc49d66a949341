import { isSallyportError } from "../model/errors.ts";
import { type OpenQuota, openQuota } from "../port/open-quota.ts";
import type { TaskList } from "../tasks/task-list.ts";
import type { Clock } from "../util/clock.ts";

/** Counts what each sender added to a tenant's list and nobody has finished. */
export type TaskQuota = (tenant: string, tasks: TaskList) => OpenQuota;

export interface TaskQuotaLimits {
  readonly most: number;
  readonly mostBytes: number;
}

export function taskQuotas(limits: TaskQuotaLimits, stopwatch: Clock): TaskQuota {
  const made = new Map<string, OpenQuota>();
  return (tenant, tasks) => {
    const quota = made.get(tenant) ?? openQuota({ ...limits, ...WORDS, isOpen, now });
    made.set(tenant, quota);
    return quota;

    async function isOpen(id: string): Promise<boolean> {
      try {
        const { status } = await tasks.get(id);
        return status === "pending" || status === "claimed";
      } catch (error) {
        if (isSallyportError(error, "not_found")) return false;
        throw error;
      }
    }
  };

  function now(): number {
    return stopwatch.now();
  }
}

const WORDS = {
  what: "open tasks",
  hint: "Wait until some of the tasks that you added are done.",
};
