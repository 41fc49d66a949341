import type { AlsoChanged, Operation } from "../model/operation.ts";
import type { BroughtBack, OperationStore } from "../store/operations.ts";
import { metadataOf } from "../tools/safety.ts";
import type { ToolCall, ToolResult } from "../tools/tool.ts";
import { inCanonicalOrder } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { inTime, renewEvery, type Stop, type Timers, type Watch } from "../util/timers.ts";
import type { AtPoint } from "./crash-point.ts";
import type { Order, WatchedCall } from "./execute.ts";

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

interface LeaseOptions {
  readonly operations: Pick<OperationStore, "renew">;
  readonly timers: Timers;
  readonly leaseMs: number;
  /** The tool's own time. The time a person takes to decide is over before it starts. */
  readonly timeoutMs: number;
}

/** Somebody else has the operation by now: what is left to do for it is theirs. */
class LeaseLostError extends Error {
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

export interface Looked {
  /** Empty: nobody looked, or nobody could. */
  readonly versionBefore: string;
  /** To be asked after the call; undefined when nobody watches, or could not look in time. */
  readonly watched?: WatchedCall;
  /** Why it must not run after all. */
  readonly moved?: string;
}

export interface LookedAfter {
  /** Empty when nobody can tell. */
  readonly stateVersion: string;
  readonly alsoChanged: readonly AlsoChanged[];
}

const NOT_LOOKED: Looked = { versionBefore: "" };

/** The looks at a target around a call. What is not there to be looked at costs nothing. */
export interface TargetLooks {
  /** Right before the call; with a sentence when the target is not what it was when this was allowed. */
  before(order: Order, operation: Operation): Looked | Promise<Looked>;
  /** Right after, so that an undo can see whether somebody changed the target since. */
  after(order: Order & Looked, operation: Operation): Promise<LookedAfter>;
  /** After something was taken back: what else is now as it was, as far as anybody can tell. */
  broughtBack(order: Order): Promise<readonly BroughtBack[]>;
}

/** A look must not outlast the lease: somebody else would take the call for abandoned, and it might run twice. */
const PART_OF_LEASE = 1 / 4;

export function targetLooks(options: AttemptOptions): TargetLooks {
  const { timers, leaseMs } = options;
  const lookMs = leaseMs * PART_OF_LEASE;

  async function before(order: Order, operation: Operation): Promise<Looked> {
    const { expectedVersions } = order;
    try {
      const versionBefore = await versionOf(order, operation, order.signal);
      if (expectedVersions?.includes(versionBefore) !== false) return { versionBefore };
      const moved =
        "Not executed: the target was changed since this was approved. Propose it again.";
      return { versionBefore, moved };
    } catch (error) {
      // Without an expectation it is only for a later undo, which then trusts nothing but the version after the call.
      if (expectedVersions === undefined) return NOT_LOOKED;
      const moved = `Not executed: the target could not be looked at (${errorText(error)}). Propose it again.`;
      return { ...NOT_LOOKED, moved };
    }
  }

  async function after(order: Order, operation: Operation): Promise<string> {
    try {
      return await versionOf(order, operation);
    } catch {
      return "";
    }
  }

  async function versionOf(
    order: Order,
    operation: Operation,
    signal?: AbortSignal,
  ): Promise<string> {
    const look = (stop: Stop) =>
      order.tool.stateVersion?.(callOf(order, operation, stop.signal, options));
    return (await inTime(look, lookMs, timers, signal)) ?? "";
  }

  return {
    // Both looks at the same time: one after the other they could outlast the lease.
    async before(order, operation) {
      const own = isWorthALook(order) ? before(order, operation) : NOT_LOOKED;
      if (order.watch === undefined) return own;
      const [looked, watched] = await Promise.all([own, inLookTime(order.watch)]);
      return watched === undefined ? looked : { ...looked, watched };
    },
    async after(order, operation) {
      const { watched, versionBefore } = order;
      const [stateVersion, others = []] = await Promise.all([
        order.tool.stateVersion === undefined ? "" : after(order, operation),
        watched && inLookTime(watched),
      ]);
      // A call that left its own target as it was has not changed anybody else's.
      const isUnchanged = stateVersion !== "" && stateVersion === versionBefore;
      return { stateVersion, alsoChanged: isUnchanged ? [] : others };
    },
    async broughtBack({ broughtBack }) {
      return (broughtBack && (await inLookTime(broughtBack))) ?? [];
    },
  };

  /** Undefined when it fails or takes too long: then nothing follows from it. */
  async function inLookTime<Seen>(look: () => Promise<Seen>): Promise<Seen | undefined> {
    try {
      return await inTime(look, lookMs, timers);
    } catch {
      return undefined;
    }
  }
}

/** What only reads has nothing to expect and nothing to take back, and an undo is not taken back. */
function isWorthALook({ tool, expectedVersions, undoOf }: Order): boolean {
  if (tool.stateVersion === undefined) return false;
  return (
    expectedVersions !== undefined || (undoOf === undefined && metadataOf(tool).effect !== "read")
  );
}
