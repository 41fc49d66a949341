import { effectiveSeverity, type Verdict } from "../model/decision.ts";

/**
 * A circuit breaker as data and pure functions; `createBreaker` holds one per process. It counts consecutive failures
 * only: percentages need a tuned window, and retrying is the caller's decision.
 */
export type BreakerState = Closed | Open | HalfOpen;

interface Common {
  /** The number of verdicts reported, including warnings. */
  readonly samples: number;
  /**
   * Grows whenever the circuit opens, closes or admits a probe. A call keeps the number it was admitted under, so a
   * late answer is recognised and cannot close the circuit in the probe's place.
   */
  readonly round: number;
}

interface Closed extends Common {
  readonly phase: "closed";
  readonly failures: number;
}

interface Open extends Common {
  readonly phase: "open";
  readonly since: number;
}

interface HalfOpen extends Common {
  readonly phase: "half-open";
  /** When the probe started; undefined when it ended without a verdict and another one may start. */
  readonly probeSince: number | undefined;
}

export interface BreakerOptions {
  /** This many consecutive failures open the circuit. */
  readonly threshold: number;
  readonly coolDownMs: number;
}

export const DEFAULT_THRESHOLD = 5;

/**
 * `abandoned` is a call that ended without a verdict because the tool itself failed: not a sample, but it frees the
 * probe.
 */
export type BreakerOutcome = "pass" | "warn" | "block" | "abandoned";

type Admission =
  | { readonly admitted: true; readonly ticket: number; readonly state: BreakerState }
  | { readonly admitted: false; readonly retryAfterMs: number; readonly state: BreakerState };

export const initialBreaker: BreakerState = { phase: "closed", failures: 0, samples: 0, round: 0 };

/**
 * Decides whether a call may proceed. Keep the returned state, also after a refusal, and report the outcome with the
 * ticket.
 */
export function admit(state: BreakerState, options: BreakerOptions, now: number): Admission {
  if (state.phase === "closed") return { admitted: true, ticket: state.round, state };
  const since = state.phase === "open" ? state.since : state.probeSince;
  if (since === undefined || now - since >= options.coolDownMs) return probe(state, now);
  // A clock that was set back would extend the cool-down; limit it to one cool-down from now.
  const start = Math.min(since, now);
  const waiting: BreakerState =
    state.phase === "open" ? { ...state, since: start } : { ...state, probeSince: start };
  return { admitted: false, retryAfterMs: options.coolDownMs - (now - start), state: waiting };
}

/**
 * Records the outcome of an admitted call. Outcomes from an earlier round never close or reopen the circuit; while it
 * is closed their failures count and their successes do not.
 */
export function recordOutcome(
  state: BreakerState,
  options: BreakerOptions,
  report: { readonly ticket: number; readonly outcome: BreakerOutcome },
  now: number,
): BreakerState {
  const { ticket, outcome } = report;
  const isCurrent = ticket === state.round;
  const samples = outcome === "abandoned" ? state.samples : state.samples + 1;
  switch (state.phase) {
    case "closed": {
      if (outcome === "abandoned") return state;
      if (outcome !== "block")
        return { ...state, samples, failures: isCurrent ? 0 : state.failures };
      const failures = state.failures + 1;
      return failures >= options.threshold
        ? open({ ...state, samples }, now)
        : { ...state, samples, failures };
    }
    case "open":
      return { ...state, samples };
    case "half-open": {
      if (!isCurrent) return { ...state, samples };
      if (outcome === "block") return open({ ...state, samples }, now);
      const round = state.round + 1;
      return outcome === "abandoned"
        ? { ...state, round, probeSince: undefined }
        : { phase: "closed", failures: 0, samples, round };
    }
  }
}

/** Block is a failure. Warn, or an empty severity (read as warn), is a sample that ends a run of failures. */
export function breakerOutcome(verdict: Verdict): "pass" | "warn" | "block" {
  if (effectiveSeverity(verdict.severity) === "block") return "block";
  return verdict.approved && verdict.severity === "" ? "pass" : "warn";
}

/** A probe that never reports is abandoned after one cool-down; the next call becomes the probe with its own ticket. */
function probe(state: Open | HalfOpen, now: number): Admission {
  const round = state.round + 1;
  const { samples } = state;
  return {
    admitted: true,
    ticket: round,
    state: { phase: "half-open", probeSince: now, samples, round },
  };
}

function open({ samples, round }: Common, now: number): BreakerState {
  return { phase: "open", since: now, samples, round: round + 1 };
}
