import {
  admit,
  type BreakerOptions,
  type BreakerState,
  DEFAULT_THRESHOLD,
  initialBreaker,
  type Outcome,
  record,
} from "../gate/breaker.ts";
import { SallyportError } from "../model/errors.ts";
import type { Clock } from "../util/clock.ts";
import { isObject, need } from "./need.ts";

/** One circuit of this process, fed by verdicts. Several guarded tools may share it. */
export interface Breaker {
  /**
   * Lets a call through and gives it a ticket to report under. Throws circuit_open, with `retryAfterMs` in its details,
   * so that an agent plans anew instead of hammering.
   */
  admit(): number;
  record(ticket: number, outcome: Outcome): void;
  snapshot(): BreakerSnapshot;
}

export interface BreakerSnapshot {
  readonly phase: BreakerState["phase"];
  readonly samples: number;
  /** Failures in a row while closed, otherwise the threshold that they reached. */
  readonly failures: number;
  readonly threshold: number;
  readonly coolDownMs: number;
  /** 0 when the next call would be admitted. */
  readonly retryAfterMs: number;
}

export interface CreateBreakerOptions extends Partial<BreakerOptions> {
  readonly clock: Clock;
}

export const DEFAULT_COOL_DOWN_MS = 30_000;

/** Everything happens in one turn of the event loop, so of many callers at once exactly one becomes the probe. */
export function createBreaker(options: CreateBreakerOptions): Breaker {
  const { clock, threshold = DEFAULT_THRESHOLD, coolDownMs = DEFAULT_COOL_DOWN_MS } = options;
  need(isObject(clock) && typeof clock.now === "function", "createBreaker needs a clock.");
  need(
    Number.isSafeInteger(threshold) && threshold >= 1,
    "The threshold of a breaker is a whole number of failures, at least 1.",
  );
  need(
    Number.isFinite(coolDownMs) && coolDownMs > 0,
    "The cool-down of a breaker is a number of milliseconds above 0.",
  );
  const settings: BreakerOptions = { threshold, coolDownMs };
  let state = initialBreaker;

  return {
    admit() {
      const answer = admit(state, settings, clock.now());
      state = answer.state;
      if (answer.admitted) return answer.ticket;
      throw new SallyportError("circuit_open", {
        hint: "Change the plan or ask a person; the same call will be refused until then.",
        phase: state.phase,
        retryAfterMs: answer.retryAfterMs,
        threshold,
      });
    },
    record(ticket, outcome) {
      state = record(state, settings, { ticket, outcome }, clock.now());
    },
    snapshot() {
      const next = admit(state, settings, clock.now());
      return {
        phase: state.phase,
        samples: state.samples,
        failures: state.phase === "closed" ? state.failures : threshold,
        threshold,
        coolDownMs,
        retryAfterMs: next.admitted ? 0 : next.retryAfterMs,
      };
    },
  };
}
