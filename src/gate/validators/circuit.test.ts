import { expect, test } from "vitest";
import { isSallyportError, SallyportError } from "../../model/errors.ts";
import { manualClock } from "../../util/clock.ts";
import { type Breaker, createBreaker } from "./validated-tool.ts";

function refusalOf(breaker: Breaker): SallyportError {
  try {
    breaker.admit();
  } catch (error) {
    if (error instanceof SallyportError) return error;
  }
  throw new Error("the call was let through");
}

function open(breaker: Breaker, failures = 5): void {
  for (let count = 0; count < failures; count += 1) breaker.record(breaker.admit(), "block");
}

test("while open every call is refused with a code, a hint and the time to wait [I-10]", () => {
  const clock = manualClock(50_000);
  const breaker = createBreaker({ clock, coolDownMs: 10_000 });
  open(breaker);
  clock.advance(4000);
  const error = refusalOf(breaker);
  expect(isSallyportError(error, "circuit_open")).toBe(true);
  expect(error).toMatchObject({ status: 503, retry: "later" });
  expect(error.details).toMatchObject({ phase: "open", retryAfterMs: 6000, threshold: 5 });
  expect(error.details.hint).toMatch(/plan/);
});

test("of a hundred callers at once after the cool-down exactly one is the probe [I-09]", () => {
  const clock = manualClock(0);
  const breaker = createBreaker({ clock, threshold: 2, coolDownMs: 100 });
  open(breaker, 2);
  clock.advance(100);
  const admitted: number[] = [];
  for (let count = 0; count < 100; count += 1) {
    try {
      admitted.push(breaker.admit());
    } catch (error) {
      expect(isSallyportError(error, "circuit_open")).toBe(true);
    }
  }
  expect(admitted).toHaveLength(1);
  expect(breaker.snapshot()).toMatchObject({ phase: "half-open", retryAfterMs: 100 });
  breaker.record(admitted[0]!, "pass");
  expect(breaker.snapshot().phase).toBe("closed");
});

test("defaults: five failures, thirty seconds; a snapshot changes nothing [I-09]", () => {
  const clock = manualClock(0);
  const breaker = createBreaker({ clock });
  open(breaker, 4);
  expect(breaker.snapshot()).toEqual({
    phase: "closed",
    samples: 4,
    failures: 4,
    threshold: 5,
    coolDownMs: 30_000,
    retryAfterMs: 0,
  });
  open(breaker, 1);
  expect(breaker.snapshot()).toMatchObject({ phase: "open", failures: 5, retryAfterMs: 30_000 });
  clock.advance(30_000);
  for (let look = 0; look < 3; look += 1) {
    expect(breaker.snapshot()).toMatchObject({ phase: "open", retryAfterMs: 0 });
  }
  expect(breaker.admit()).toBeTypeOf("number");
});

test("a breaker without a clock or with impossible numbers cannot be made [I-08]", () => {
  const clock = manualClock(0);
  expect(() => createBreaker({} as never)).toThrow(TypeError);
  expect(() => createBreaker({ clock: {} as never })).toThrow(TypeError);
  for (const threshold of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => createBreaker({ clock, threshold }), `threshold ${threshold}`).toThrow(TypeError);
  }
  for (const coolDownMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => createBreaker({ clock, coolDownMs }), `cool-down ${coolDownMs}`).toThrow(
      TypeError,
    );
  }
});
