import type { Task } from "../model/task.ts";
import type { DecisionStore } from "../store/decisions.ts";
import type { MayComplete } from "./task-list.ts";

export interface TiesOptions {
  readonly decisions: Pick<DecisionStore, "get">;
  /**
   * Whether what was promised for this delegation is fulfilled; only `true` is a yes. Without it, a task with a delegation
   * cannot be completed. Shape: callback.
   */
  readonly isFulfilled?: (delegationId: string) => Promise<boolean> | boolean;
}

/**
 * For `mayComplete`: a task is done when what it is tied to is done, that is when all its decisions are executed and the
 * promise of its delegation is fulfilled. Both are final, so what was true when it was looked at stays true.
 */
export function tiesFulfilled({ decisions, isFulfilled }: TiesOptions): MayComplete {
  return async ({ decisionIds = [], delegationId }: Task) => {
    for (const id of decisionIds) {
      const { state } = await decisions.get(id);
      if (state !== "executed") return `Its decision ${id} is ${state}, not executed.`;
    }
    if (delegationId === undefined) return true;
    if (isFulfilled === undefined) {
      return `Nobody can tell whether the promise of its delegation ${delegationId} is fulfilled.`;
    }
    const fulfilled = await isFulfilled(delegationId);
    return fulfilled === true || `The promise of its delegation ${delegationId} is not fulfilled.`;
  };
}
