import { effectiveSeverity, type Verdict } from "../model/verdict.ts";

/**
 * A circuit breaker as data and pure functions; `createBreaker` in staging holds one for a process. It counts failures
 * in a row and nothing else: percentages need a window to be tuned, and retrying is the caller's decision.
 */
export type BreakerState = Closed | Open | HalfOpen;

interface Common {
  /** How many verdicts were reported, warnings included. */
  readonly samples: number;
  /**
   * Grows whenever the circuit opens, closes or lets a probe through. A call keeps the number it was admitted under, so
   * an answer that arrives after the circuit has moved on is recognised and cannot close it in the probe's place.
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
  /** When the one probe left; undefined when it ended without a verdict and another may go. */
  readonly probeSince: number | undefined;
}

export interface BreakerOptions {
  /** So many failures in a row open the circuit. */
  readonly threshold: number;
  readonly coolDownMs: number;
}

export const DEFAULT_THRESHOLD = 5;

/** `abandoned` is a call that ended without a verdict, because the tool itself failed: no sample, but a free probe. */
export type Outcome = "pass" | "warn" | "block" | "abandoned";

export type Admission =
  | { readonly admitted: true; readonly ticket: number; readonly state: BreakerState }
  | { readonly admitted: false; readonly retryAfterMs: number; readonly state: BreakerState };

export const initialBreaker: BreakerState = { phase: "closed", failures: 0, samples: 0, round: 0 };

/** May a call go on? Keep the state that comes back, also after a no, and report the outcome under the ticket. */
export function admit(state: BreakerState, options: BreakerOptions, now: number): Admission {
  if (state.phase === "closed") return { admitted: true, ticket: state.round, state };
  const since = state.phase === "open" ? state.since : state.probeSince;
  if (since === undefined || now - since >= options.coolDownMs) return probe(state, now);
  // A clock that was set back would keep the circuit open for as long again; one cool-down from now is enough.
  const start = Math.min(since, now);
  const waiting: BreakerState =
    state.phase === "open" ? { ...state, since: start } : { ...state, probeSince: start };
  return { admitted: false, retryAfterMs: options.coolDownMs - (now - start), state: waiting };
}

/**
 * Takes in what became of an admitted call. Answers from an earlier round never close or re-open anything; while the
 * circuit is closed they count against it but not in its favour.
 */
export function record(
  state: BreakerState,
  options: BreakerOptions,
  report: { readonly ticket: number; readonly outcome: Outcome },
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

/** Block counts as a failure. Warn, and an empty severity read as warn, is a sample that ends a run of failures. */
export function outcomeOf(verdict: Verdict): "pass" | "warn" | "block" {
  if (effectiveSeverity(verdict.severity) === "block") return "block";
  return verdict.approved && verdict.severity === "" ? "pass" : "warn";
}

/** A probe that never reports back is given up after a cool-down; this is then the next one, with its own ticket. */
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
