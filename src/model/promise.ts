import type { Instant } from "./names.ts";

/** What must be true in the end, and which evidence proves it. */
export interface CompletionPromise {
  readonly id: string;
  readonly statement: string;
  /** Empty: the report itself is enough. */
  readonly evidence: readonly EvidenceNeed[];
}

export interface EvidenceNeed {
  /** Unique in its promise. */
  readonly name: string;
  /** The command whose outcome counts; left out: any that proves it. */
  readonly command?: string;
}

/** One check that somebody made, as the verify-result tool has recorded it. */
export interface Evidence {
  readonly promiseId: string;
  readonly need: string;
  readonly command: string;
  readonly exitCode: number;
  readonly keyOutput: string;
  readonly conclusion: string;
  /** Decided when it was recorded: only green evidence proves anything. */
  readonly green: boolean;
  /** The call that recorded it: made again, it is the same evidence. */
  readonly key: string;
  /** The session that recorded it. */
  readonly sessionId: string;
  readonly at: Instant;
}

/** The needs that the evidence does not meet. The newest about each need counts: a check that failed since is a failed check. */
export function unmetNeeds(
  promise: CompletionPromise,
  evidence: readonly Evidence[],
): readonly EvidenceNeed[] {
  return promise.evidence.filter((need) => {
    const newest = evidence.findLast(
      (one) =>
        one.promiseId === promise.id &&
        one.need === need.name &&
        (need.command === undefined || one.command === need.command),
    );
    return newest?.green !== true;
  });
}

export function isMet(promise: CompletionPromise, evidence: readonly Evidence[]): boolean {
  return unmetNeeds(promise, evidence).length === 0;
}
