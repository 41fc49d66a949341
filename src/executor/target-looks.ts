import type { AlsoChanged, Operation } from "../model/operation.ts";
import type { BroughtBack } from "../store/operations.ts";
import { metadataOf } from "../tools/metadata.ts";
import { errorText } from "../util/error-text.ts";
import { inTime, type Stop } from "../util/timers.ts";
import { type AttemptOptions, callOf } from "./attempt.ts";
import type { Order, WatchedCall } from "./order.ts";

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
