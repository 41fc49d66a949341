import type { Evidence } from "./evidence.ts";

/** What really happened, to be reported next to the zeros. */
export interface Counts {
  readonly effects: number;
  /** Requests that production did not take a second time, or from somebody who was late. */
  readonly refusedRepeats: number;
  readonly takenOver: number;
  readonly executed: number;
  readonly failed: number;
  readonly rejected: number;
  readonly undone: number;
  readonly unknown: number;
  readonly leftPending: number;
  /** How often the kill switch was thrown. */
  readonly stops: number;
  /** Answers that were still true. */
  readonly acknowledged: number;
  readonly entries: number;
}

export const NO_COUNTS: Counts = {
  effects: 0,
  refusedRepeats: 0,
  takenOver: 0,
  executed: 0,
  failed: 0,
  rejected: 0,
  undone: 0,
  unknown: 0,
  leftPending: 0,
  stops: 0,
  acknowledged: 0,
  entries: 0,
};

export function countsOf({ ledger, trail, decisions, told }: Evidence): Counts {
  const inState = (...states: readonly string[]) =>
    decisions.filter(({ state }) => states.includes(state)).length;
  const ofType = (name: string) => trail.filter(({ type }) => type === name).length;
  return {
    effects: ledger.filter(({ applied }) => applied).length,
    refusedRepeats: ledger.filter(({ applied }) => !applied).length,
    takenOver: ofType("operation.taken_over"),
    executed: inState("executed"),
    failed: inState("failed"),
    rejected: inState("rejected_tech", "rejected_ml"),
    undone: ofType("operation.undone"),
    unknown: ofType("operation.lost"),
    leftPending: inState("pending_tech", "pending_ml"),
    stops: ofType("switch.stopped"),
    acknowledged: told.length,
    entries: trail.length,
  };
}

export function addCounts(one: Counts, other: Counts): Counts {
  const names = Object.keys(NO_COUNTS) as readonly (keyof Counts)[];
  const sums = names.map((name) => [name, one[name] + other[name]] as const);
  return { ...NO_COUNTS, ...Object.fromEntries(sums) };
}
