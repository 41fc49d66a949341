import type { Operation } from "../model/operation.ts";
import { metadataOf } from "../tools/metadata.ts";
import type { ToolCall, ToolResult } from "../tools/tool.ts";
import { inCanonicalOrder } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import type { Stop } from "../util/timers.ts";
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
 * Calls the tool once, under a lease that is renewed while it works. A result with `isError` is how a tool says that it did
 * not happen. Whatever it throws leaves the outcome open, unless the tool only reads: a dropped connection, the commonest
 * exception of all, says nothing about what the target has done.
 */
export async function attempt(
  order: Order,
  operation: Operation,
  options: AttemptOptions,
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
    if (metadataOf(order.tool).effect === "read") {
      return { ended: true, result: { text: reason, isError: true } };
    }
    return { ended: false, reason, isOurs: !(error instanceof LeaseLostError) };
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
    // The stored call reads the same: one that waited for a person or was recovered gets the same bytes as one that did not.
    input: inCanonicalOrder(order.input),
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
