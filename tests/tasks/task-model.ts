import type { Model } from "./linearizability.ts";

/** What was asked of one task. `fence` is the one the caller showed; without it, it showed none. */
export interface TaskInput {
  readonly op: "claim" | "renew" | "complete" | "release" | "expire" | "fail" | "reopen";
  readonly worker?: string;
  readonly fence?: number | "any";
}

/** What was answered, and at which time of the store's clock: that one decides about leases. */
export type TaskOutput =
  | {
      readonly ok: true;
      readonly at: number;
      readonly fence?: number;
      readonly leaseUntil?: number;
    }
  | { readonly ok: false; readonly at: number; readonly code: string };

export interface TaskState {
  readonly status: "pending" | "claimed" | "completed" | "failed";
  /** Of the last known claim. A claim without an answer has a larger one, which is unknown yet. */
  readonly fence: number;
  readonly fenceKnown: boolean;
  /** Infinity without a lease, "unknown" after a claim or renewal without an answer. */
  readonly leaseUntil: number | "unknown";
}

/** A task as the world sees it: at most one live claim, fences that grow, no write under an old one. */
export const taskModel: Model<TaskState, TaskInput, TaskOutput> = {
  initial: { status: "pending", fence: 0, fenceKnown: true, leaseUntil: Infinity },
  key: (state) =>
    JSON.stringify([state.status, state.fence, state.fenceKnown, String(state.leaseUntil)]),
  step(state, input, output) {
    if (output === undefined) return stepUnknown(state, input);
    if (!output.ok) return mayRefuse(state, input, output) ? [state] : [];
    return stepAnswered(state, input, output);
  },
};

function stepAnswered(
  state: TaskState,
  { op, fence }: TaskInput,
  output: TaskOutput & { ok: true },
): TaskState[] {
  const { at, leaseUntil = Infinity } = output;
  const open = state.status === "pending" || state.status === "claimed";
  const held = holds(state, fence, at);
  // The fence that was shown and accepted is the one that was not known.
  const known = { ...state, ...(typeof fence === "number" ? { fence, fenceKnown: true } : {}) };
  switch (op) {
    case "claim": {
      const mine = output.fence ?? 0;
      if (!isClaimable(state, at) || mine <= state.fence) return [];
      return [{ status: "claimed", fence: mine, fenceKnown: true, leaseUntil }];
    }
    case "renew":
      return held && state.status === "claimed" ? [{ ...known, leaseUntil }] : [];
    case "complete":
      return held && open ? [{ ...known, status: "completed", leaseUntil: Infinity }] : [];
    case "fail":
      return held && open ? [{ ...known, status: "failed", leaseUntil: Infinity }] : [];
    case "release":
      return held && state.status === "claimed"
        ? [{ ...known, status: "pending", leaseUntil: Infinity }]
        : [];
    case "expire":
      return isOver(state, at) ? [{ ...state, status: "pending", leaseUntil: Infinity }] : [];
    case "reopen":
      return state.status === "failed" ? [{ ...state, status: "pending" }] : [];
  }
}

/** It happened, with an unknown answer. (That it never happened is the checker's other branch.) */
function stepUnknown(state: TaskState, input: TaskInput): readonly TaskState[] {
  if (input.op === "claim") {
    const { status, leaseUntil } = state;
    const maybe = status === "pending" || (status === "claimed" && leaseUntil !== Infinity);
    return maybe ? [{ ...state, status: "claimed", fenceKnown: false, leaseUntil: "unknown" }] : [];
  }
  // When it was judged is unknown, so the lease does not forbid it; an expiry needs a lease.
  const at = input.op === "expire" ? Infinity : -Infinity;
  const next = stepAnswered(state, input, { ok: true, at });
  return input.op === "renew"
    ? next.map((one) => ({ ...one, leaseUntil: "unknown" as const }))
    : next;
}

function mayRefuse(
  state: TaskState,
  { op, fence }: TaskInput,
  { at, code }: TaskOutput & { ok: false },
): boolean {
  switch (code) {
    case "concurrent_modification":
      return true;
    case "already_completed":
      return state.status === "completed";
    case "not_claimable":
      return op === "claim" && (!isClaimable(state, at) || state.leaseUntil === "unknown");
    case "claim_lost":
      return !holds(state, fence, at) || state.leaseUntil === "unknown" || !state.fenceKnown;
    case "illegal_transition":
      if (op === "reopen") return state.status !== "failed";
      if (op === "expire") return !isOver(state, at) || state.leaseUntil === "unknown";
      return op === "complete" || op === "fail"
        ? state.status === "failed"
        : state.status !== "claimed";
    default:
      return false;
  }
}

function isClaimable(state: TaskState, at: number): boolean {
  return state.status === "pending" || isOver(state, at);
}

function isOver({ status, leaseUntil }: TaskState, at: number): boolean {
  if (status !== "claimed" || leaseUntil === Infinity) return false;
  return leaseUntil === "unknown" || at >= leaseUntil;
}

/** Without a fence only a claim without a lease can be ended; "any" ends every claim. */
function holds(state: TaskState, fence: TaskInput["fence"], at: number): boolean {
  if (fence === "any") return true;
  if (fence === undefined) return state.status !== "claimed" || state.leaseUntil === Infinity;
  if (state.status !== "claimed") return false;
  if (state.fenceKnown ? fence !== state.fence : fence <= state.fence) return false;
  return state.leaseUntil === "unknown" || at < state.leaseUntil;
}
