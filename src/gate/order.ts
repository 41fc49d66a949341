// An order to execute one call, its result, and how its tool is called: with which arguments, and under which lease.

import type { DecisionId, SessionId } from "../model/decision.ts";
import type { AlsoChanged, Operation, OperationId } from "../model/operation.ts";
import type { DecisionMove } from "../store/decisions.ts";
import type { BroughtBack, Hold, Outcome, StartRefusal } from "../store/operations.ts";
import type { Progress, Tool, ToolCall, ToolResult } from "../tools/tool.ts";
import { inCanonicalOrder } from "../util/canonical-json.ts";
import type { JsonValue } from "../util/json.ts";
import { inTime, renewEvery, type Stop, type Watch } from "../util/timers.ts";
import type { ExecutionContext } from "./context.ts";

/** One call that the gate allowed or a person approved, ready to be executed. */
export interface Order {
  readonly operationId: OperationId;
  readonly tool: Tool;
  /** The tool's definition when it was allowed. */
  readonly definitionHash: string;
  /** Parsed, and the very value whose canonical form was shown and hashed. */
  readonly input: JsonValue;
  readonly sessionId: SessionId;
  readonly messageId: string;
  readonly callId: string;
  readonly turn: number;
  readonly step: number;
  readonly workingDirectory: string;
  /** The resolved paths of what the call touches; see `ToolContext.places`. */
  readonly places: readonly string[];
  /** The decision that it consumes, and the hash that was approved. */
  readonly approval?: { readonly decisionId: DecisionId; readonly hash: string };
  /** Versions of the target under which it may run; compared after the intent, right before the tool is called. */
  readonly expectedVersions?: readonly string[];
  /**
   * Reads the versions of other targets right before the call and returns a function to call right after it, which says
   * which earlier operations have had their targets changed. A failure of it does not fail the call.
   */
  readonly watch?: () => Promise<WatchedCall>;
  /** The operation that it undoes. */
  readonly undoOf?: OperationId;
  /** Called after an undo: which other targets are now as their operations left them. A failure of it does not fail the call. */
  readonly broughtBack?: () => Promise<readonly BroughtBack[]>;
  /** The move of the decision that this outcome causes; written in the same transaction. */
  readonly closes?: (outcome: Outcome) => DecisionMove | undefined;
  /**
   * Who asked for it, from the agent upwards: none of them may answer the question about a lost outcome. An undo starts with
   * the person who asked for the rollback, who may.
   */
  readonly chain?: readonly string[];
  /** What else must hold in the transaction that writes the intent. */
  readonly holds?: readonly Hold[];
  /** The standing rule that allowed it without a person, for the log. */
  readonly allowedBy?: string;
  readonly actor: string;
  readonly signal?: AbortSignal;
  readonly progress?: (report: Progress) => void;
}

/** Called right after the call: which targets of earlier operations are not as they were right before it. */
export type WatchedCall = () => Promise<readonly AlsoChanged[]>;

/** The result of an order. Only failures of the store are thrown. */
export type Executed =
  | { readonly status: "done"; readonly operation: Operation; readonly result: ToolResult }
  | { readonly status: "failed"; readonly operation: Operation; readonly result: ToolResult }
  | { readonly status: "unknown"; readonly operation: Operation }
  /** Nothing was executed. `used_up` comes with the operation that did it. */
  | {
      readonly status: "refused";
      readonly reason: StartRefusal | "definition_changed";
      readonly operation?: Operation;
    }
  /** Another process took it over meanwhile; the operation is what it has recorded so far. */
  | { readonly status: "overtaken"; readonly operation: Operation };

/** What the tool is called with. */
export function callOf(
  { store: { tenant } }: ExecutionContext,
  order: Order,
  operation: Operation,
  signal: AbortSignal,
): ToolCall {
  return {
    callId: order.callId,
    // The stored call parses to the same bytes, so one that waited for a person or was recovered gets the same input.
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

/** Another process holds the operation by now: what is left to do for it is for that one. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";

  constructor() {
    super("the lease was lost");
  }
}

/**
 * Calls a tool with its own time limit. The lease of the operation is renewed meanwhile, so that a slow tool is not taken for
 * a process that went away. Throws, or rejects, with a LeaseLostError, a TimeoutError or the reason of `signal`.
 */
export function underLease<Result>(
  { store: { operations }, timers, leaseMs, timeoutMs }: ExecutionContext,
  { id, fence }: Pick<Operation, "id" | "fence">,
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
