import type { Operation } from "../model/operation.ts";
import type { OperationStore } from "../store/operations.ts";
import { renewEvery } from "../util/renew-every.ts";
import { inTime, type Stop, type Timers, type Watch } from "../util/timers.ts";

export interface LeaseOptions {
  readonly operations: Pick<OperationStore, "renew">;
  readonly timers: Timers;
  readonly leaseMs: number;
  /** The tool's own time. The time a person takes to decide is over before it starts. */
  readonly timeoutMs: number;
}

/** Somebody else has the operation by now: what is left to do for it is theirs. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";

  constructor() {
    super("the lease was lost");
  }
}

/**
 * Asks a tool for something in its own time. The operation is held meanwhile: who takes longer than a lease is not to be
 * taken for somebody who went away. Throws, or rejects, with a LeaseLostError, a TimeoutError or the reason of `signal`.
 */
export function underLease<Result>(
  { id, fence }: Pick<Operation, "id" | "fence">,
  { operations, timers, leaseMs, timeoutMs }: LeaseOptions,
  work: (stop: Stop) => Result | PromiseLike<Result>,
  signal?: AbortSignal,
): Result | Promise<Result> {
  const hold: Watch = (giveUp) =>
    renewEvery(leaseMs / 3, timers, async () => {
      const isOurs = await operations.renew(id, fence, leaseMs);
      if (!isOurs) giveUp(new LeaseLostError());
      return isOurs;
    });
  return inTime(work, timeoutMs, timers, signal, hold);
}
