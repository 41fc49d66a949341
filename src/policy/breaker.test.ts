import fc from "fast-check";
import { expect, test } from "vitest";
import { NO_VERDICT } from "../model/decision.ts";
import {
  admit,
  type BreakerOutcome,
  type BreakerState,
  breakerOutcome,
  DEFAULT_THRESHOLD,
  initialBreaker,
  recordOutcome,
} from "./breaker.ts";

const options = { threshold: DEFAULT_THRESHOLD, coolDownMs: 1000 };

/** Walks a list of steps; a number is a moment, "call" asks, an outcome reports for the last admitted call. */
function walk(
  steps: readonly (number | "call" | BreakerOutcome)[],
  start: BreakerState = initialBreaker,
) {
  let state = start;
  let now = 0;
  let ticket = start.round;
  const answers: boolean[] = [];
  for (const step of steps) {
    if (typeof step === "number") {
      now = step;
    } else if (step === "call") {
      const answer = admit(state, options, now);
      state = answer.state;
      if (answer.admitted) ticket = answer.ticket;
      answers.push(answer.admitted);
    } else {
      state = recordOutcome(state, options, { ticket, outcome: step }, now);
    }
  }
  return { state, answers };
}

const blocks = (count: number) => Array.from({ length: count }, () => "block" as const);
const opened = walk(blocks(5)).state;

test("five blocks in a row open the circuit, four do not [I-09]", () => {
  expect(DEFAULT_THRESHOLD).toBe(5);
  expect(walk(blocks(4)).state.phase).toBe("closed");
  expect(walk([...blocks(4), "call"]).answers).toEqual([true]);
  expect(opened.phase).toBe("open");
});

test("only failures in a row count, there are no percentages [I-09]", () => {
  for (const between of ["pass", "warn"] as const) {
    const steps = Array.from({ length: 50 }, () => [...blocks(4), between]).flat();
    expect(walk(steps).state).toMatchObject({ phase: "closed", failures: 0, samples: 250 });
  }
  expect(walk([...blocks(4), "abandoned", "block"]).state.phase).toBe("open");
});

test("the circuit stays open until the whole cool-down is over, then lets one probe through [I-09]", () => {
  expect(walk(["call", 999, "call", 1000, "call", "call", "call"], opened).answers).toEqual([
    false,
    false,
    true,
    false,
    false,
  ]);
  const refused = admit(opened, options, 400);
  expect(refused).toMatchObject({ admitted: false, retryAfterMs: 600 });
});

test("a probe that succeeds closes the circuit and starts the count at zero [I-09]", () => {
  for (const outcome of ["pass", "warn"] as const) {
    const { state } = walk([1000, "call", outcome], opened);
    expect(state).toMatchObject({ phase: "closed", failures: 0 });
    expect(walk([1000, ...blocks(4)], state).state.phase).toBe("closed");
  }
});

test("a probe that fails opens it again for another cool-down [I-09]", () => {
  const { state } = walk([1500, "call", "block"], opened);
  expect(state).toMatchObject({ phase: "open", since: 1500 });
  expect(walk([2499, "call", 2500, "call"], state).answers).toEqual([false, true]);
});

test("a probe that never reports blocks for one cool-down only [I-09]", () => {
  const { answers } = walk([1000, "call", 1999, "call", 2000, "call", "call"], opened);
  expect(answers).toEqual([true, false, true, false]);
});

test("the late answer of a lost probe does not count for its successor [I-09]", () => {
  const first = admit(opened, options, 1000);
  const second = admit(first.state, options, 2000);
  if (!first.admitted || !second.admitted) throw new Error("both are probes");
  for (const outcome of ["pass", "block", "abandoned"] as const) {
    const after = recordOutcome(second.state, options, { ticket: first.ticket, outcome }, 2100);
    expect(after).toMatchObject({ phase: "half-open", probeSince: 2000, round: second.ticket });
  }
});

test("an answer to a call from before the circuit opened neither closes nor extends it [I-09]", () => {
  const late = { ticket: 0, outcome: "pass" } as const;
  expect(recordOutcome(opened, options, late, 10)).toMatchObject({ phase: "open", since: 0 });
  const probing = walk([1000, "call"], opened).state;
  expect(recordOutcome(probing, options, late, 1001).phase).toBe("half-open");
  const closed = walk([1000, "call", "pass", 1001, ...blocks(4)], opened).state;
  expect(recordOutcome(closed, options, late, 1002)).toMatchObject({
    phase: "closed",
    failures: 4,
  });
  const lateBlock = { ticket: 0, outcome: "block" } as const;
  expect(recordOutcome(closed, options, lateBlock, 1002).phase).toBe("open");
});

test("a probe whose tool failed is not a sample, and the next caller may probe immediately [I-09]", () => {
  expect(walk([1000, "call", "abandoned", "call", "call"], opened).answers).toEqual([
    true,
    true,
    false,
  ]);
});

test("a clock that is set back keeps the circuit open for one cool-down at most [I-09]", () => {
  const { state, answers } = walk([-86_400_000, "call"], opened);
  expect(answers).toEqual([false]);
  expect(walk([-86_400_000 + 1000, "call"], state).answers).toEqual([true]);
});

test("warn and empty are samples but no failures, block is a failure [I-03]", () => {
  const verdict = { ...NO_VERDICT, validator: "v" };
  expect(breakerOutcome({ ...verdict, approved: true })).toBe("pass");
  expect(breakerOutcome({ ...verdict, approved: false })).toBe("warn");
  expect(breakerOutcome({ ...verdict, approved: true, severity: "warn" })).toBe("warn");
  expect(breakerOutcome({ ...verdict, severity: "warn" })).toBe("warn");
  expect(breakerOutcome({ ...verdict, severity: "block" })).toBe("block");
  expect(breakerOutcome({ ...verdict, approved: true, severity: "block" })).toBe("block");
  const many = Array.from({ length: 100 }, () => "warn" as const);
  expect(walk(many).state).toMatchObject({ phase: "closed", samples: 100, failures: 0 });
});

test("in any history at most one probe is in flight and nothing is admitted while open [I-09]", () => {
  const step = fc.oneof(
    fc.constant("call" as const),
    fc.record({
      which: fc.nat(9),
      outcome: fc.constantFrom<BreakerOutcome>("pass", "warn", "block", "abandoned"),
    }),
    fc.integer({ min: 0, max: 1500 }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      let state: BreakerState = initialBreaker;
      let now = 0;
      const tickets = [0];
      for (const item of steps) {
        const before = state;
        if (typeof item === "number") {
          now += item;
        } else if (item === "call") {
          const answer = admit(state, options, now);
          state = answer.state;
          if (!answer.admitted) {
            expect(before.phase).not.toBe("closed");
            expect(answer.retryAfterMs).toBeGreaterThan(0);
            expect(answer.retryAfterMs).toBeLessThanOrEqual(options.coolDownMs);
          } else {
            tickets.unshift(answer.ticket);
            if (before.phase === "open") expect(now - before.since).toBeGreaterThanOrEqual(1000);
            if (before.phase === "half-open" && before.probeSince !== undefined) {
              expect(now - before.probeSince).toBeGreaterThanOrEqual(1000);
            }
            // Each call that is let through while the breaker is not closed has its own number.
            if (before.phase !== "closed") expect(answer.ticket).toBeGreaterThan(before.round);
          }
        } else {
          const ticket = tickets[item.which % tickets.length] ?? 0;
          state = recordOutcome(state, options, { ticket, outcome: item.outcome }, now);
          if (before.phase === "open") expect(state.phase).toBe("open");
          if (before.phase === "half-open" && ticket !== before.round) {
            expect(state.phase).toBe("half-open");
          }
        }
        expect(state.round).toBeGreaterThanOrEqual(before.round);
      }
    }),
    { numRuns: 500 },
  );
});
