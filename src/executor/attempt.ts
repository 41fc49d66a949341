import { isSallyportError } from "../model/errors.ts";
import type { Operation } from "../model/operation.ts";
import { metadataOf } from "../tools/metadata.ts";
import type { ToolCall, ToolResult } from "../tools/tool.ts";
import { errorText } from "../util/error-text.ts";
import { type Stop, TimeoutError } from "../util/timers.ts";
import type { AtPoint } from "./crash-point.ts";
import type { Order } from "./order.ts";
import { LeaseLostError, type LeaseOptions, underLease } from "./under-lease.ts";

export interface AttemptOptions extends LeaseOptions {
  readonly tenant: string;
  readonly at: AtPoint;
}

export type Attempted =
  | { readonly ended: true; readonly result: ToolResult }
  /** It may or may not have happened. With the lease lost it is somebody else's to find out. */
  | { readonly ended: false; readonly reason: string; readonly isOurs: boolean };

/**
 * Calls the tool once, under a lease that is renewed while it works. A tool that says it failed has failed. One that never
 * answered, was cut off or says itself that it does not know leaves the outcome open, unless it only reads. So does one that
 * throws while an earlier call is `open`: that it could not be reached now says nothing about what it was asked before.
 */
export async function attempt(
  order: Order,
  operation: Operation,
  options: AttemptOptions,
  earlier: "open" | "none",
): Promise<Attempted> {
  const { at } = options;
  try {
    at("S6.before");
    const work = ({ signal }: Stop) =>
      order.tool.execute(callOf(order, operation, signal, options));
    const result = await underLease(operation, options, work, order.signal);
    at("S6.after");
    return { ended: true, result };
  } catch (error) {
    const reason = errorText(error);
    const isOurs = !(error instanceof LeaseLostError);
    const isCutOff = error instanceof TimeoutError || order.signal?.aborted === true || !isOurs;
    const isOpen = isCutOff || earlier === "open" || isSallyportError(error, "outcome_unknown");
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
      places: order.places,
      progress: (report) => order.progress?.(report),
      // The same for every attempt: a target that knows keys takes the second one for the first.
      idempotencyKey: `${tenant}/${operation.id}`,
      fence: operation.fence,
    },
  };
}
