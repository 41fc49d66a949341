import { isSallyportError } from "../model/errors.ts";
import type { Operation } from "../model/operation.ts";
import type { OperationStore } from "../store/operations.ts";
import { metadataOf } from "../tools/metadata.ts";
import type { ToolCall, ToolResult } from "../tools/tool.ts";
import { errorText } from "../util/error-text.ts";
import { renewEvery } from "../util/renew-every.ts";
import { inTime, type Stop, TimeoutError, type Timers, type Watch } from "../util/timers.ts";
import type { AtPoint } from "./crash-point.ts";
import type { Order } from "./order.ts";

export interface AttemptOptions {
  readonly tenant: string;
  readonly operations: Pick<OperationStore, "renew">;
  readonly timers: Timers;
  readonly leaseMs: number;
  /** The tool's own time. The time a person takes to decide is over before it starts. */
  readonly timeoutMs: number;
  readonly at: AtPoint;
}

export type Attempted =
  | { readonly ended: true; readonly result: ToolResult }
  /** It may or may not have happened. With the lease lost it is somebody else's to find out. */
  | { readonly ended: false; readonly reason: string; readonly isOurs: boolean };

/**
 * Calls the tool once, under a lease that is renewed while it works. A tool that says it failed has failed. One that never
 * answered, was cut off or says itself that it does not know leaves the outcome open, unless it only reads.
 */
export async function attempt(
  order: Order,
  operation: Operation,
  options: AttemptOptions,
): Promise<Attempted> {
  const { timers, timeoutMs, leaseMs, operations, at } = options;
  let isOurs = true;
  const holdLease: Watch = (giveUp) =>
    renewEvery(leaseMs / 3, timers, async () => {
      isOurs = await operations.renew(operation.id, operation.fence, leaseMs);
      if (!isOurs) giveUp(new Error("the lease was lost"));
      return isOurs;
    });
  try {
    at("S6.before");
    const work = ({ signal }: Stop) =>
      order.tool.execute(callOf(order, operation, signal, options));
    const result = await inTime(work, timeoutMs, timers, order.signal, holdLease);
    at("S6.after");
    return { ended: true, result };
  } catch (error) {
    const reason = errorText(error);
    const isCutOff = error instanceof TimeoutError || order.signal?.aborted === true || !isOurs;
    const isOpen = isCutOff || isSallyportError(error, "outcome_unknown");
    if (isOpen && metadataOf(order.tool).effect !== "read") {
      return { ended: false, reason, isOurs };
    }
    return { ended: true, result: { text: reason, isError: true } };
  }
}

export function callOf(
  order: Order,
  operation: Operation,
  signal: AbortSignal,
  { tenant }: Pick<AttemptOptions, "tenant">,
): ToolCall {
  return {
    callId: order.callId,
    input: order.input,
    context: {
      tenant,
      sessionId: order.sessionId,
      signal,
      workingDirectory: order.workingDirectory,
      progress: (report) => order.progress?.(report),
      // The same for every attempt: a target that knows keys takes the second one for the first.
      idempotencyKey: `${tenant}/${operation.id}`,
      fence: operation.fence,
    },
  };
}
