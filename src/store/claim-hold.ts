import type { Hold } from "./operations.ts";
import { TASK_QUEUE } from "./task-rows.ts";
import { LIVE } from "./task-swaps.ts";
import type { ClaimRef } from "./tasks.ts";

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
