import { expect, test } from "vitest";
import type { Validator, Verdict } from "../../model/decision.ts";
import { isSallyportError, SallyportError } from "../../model/errors.ts";

import { reviewRequest } from "../review.ts";
import { allMustApprove, waterfall } from "./composite.ts";

const options = { signal: new AbortController().signal };
const diff = reviewRequest({ sourceTool: "t", raw: new Uint8Array([1]), metadata: {} });
const modes = [
  ["all-must-approve", allMustApprove],
  ["waterfall", waterfall],
] as const;

interface Spy extends Validator {
  readonly calls: number;
}

/** A child that answers with a verdict, or fails with an error, and counts how often it was asked. */
function child(name: string, answer: Partial<Verdict> | Error): Spy {
  let calls = 0;
  return {
    name,
    get calls() {
      return calls;
    },
    async review() {
      calls += 1;
      if (answer instanceof Error) throw answer;
      return {
        approved: true,
        score: 1,
        reason: `${name} says so`,
        severity: "",
        validator: name,
        policyVersion: "7",
        ...answer,
      };
    },
  };
}

const composite = (make: typeof waterfall, ...validators: readonly Validator[]) =>
  make({ name: "all", policyVersion: "2", validators });

test("all-must-approve runs every child and takes the worst severity and the lowest score [I-06]", async () => {
  const children = [
    child("a", { score: 0.9, severity: "warn" }),
    child("b", { approved: false, score: 0.5, severity: "block" }),
    child("c", { approved: false, score: 0.7, severity: "warn" }),
    child("d", { score: 0.8 }),
  ];
  const verdict = await composite(allMustApprove, ...children).review(diff, options);
  expect(verdict).toEqual({
    approved: false,
    score: 0.5,
    severity: "block",
    reason:
      "a@7 approved: a says so; b@7 refused: b says so; c@7 refused: c says so; d@7 approved: d says so",
    validator: "all",
    policyVersion: "2",
  });
  expect(children.map(({ calls }) => calls)).toEqual([1, 1, 1, 1]);
});

test("all-must-approve joins the errors, keeps every cause and still runs every child [I-06]", async () => {
  const [first, second] = [new Error("one"), new SallyportError("store_unavailable")];
  const children = [child("a", first), child("b", { approved: false }), child("c", second)];
  const last = child("d", {});
  const error: unknown = await Promise.resolve(
    composite(allMustApprove, ...children, last).review(diff, options),
  ).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(AggregateError);
  expect((error as AggregateError).errors).toEqual([first, second]);
  expect((error as AggregateError).message).toMatch(/a failed: one.*b@7 refused.*c failed: .*d@7/);
  expect((error as AggregateError).cause).toBe(first);
  expect(last.calls).toBe(1);
  const single = composite(allMustApprove, child("x", second)).review(diff, options);
  const thrown = await Promise.resolve(single).catch((reason: unknown) => reason);
  expect(isSallyportError(thrown, "store_unavailable")).toBe(true);
});

test("waterfall stops at the first refusal, so the cheap check saves the costly one [I-06]", async () => {
  for (const severity of ["", "warn", "block"] as const) {
    const [cheap, costly] = [
      child("cheap", { approved: false, score: 0.2, severity }),
      child("x", {}),
    ];
    const first = child("first", { score: 0.9 });
    const verdict = await composite(waterfall, first, cheap, costly).review(diff, options);
    expect(verdict).toMatchObject({ approved: false, severity, score: 0.2 });
    expect(verdict.reason).toBe("first@7 approved: first says so; cheap@7 refused: cheap says so");
    expect([first.calls, cheap.calls, costly.calls]).toEqual([1, 1, 0]);
  }
});

test("waterfall stops at the first error [I-06]", async () => {
  const cause = new Error("down");
  const [broken, costly] = [child("broken", cause), child("costly", {})];
  const review = composite(waterfall, child("a", {}), broken, costly).review(diff, options);
  await expect(review).rejects.toMatchObject({ errors: [cause], cause });
  expect(costly.calls).toBe(0);
});

test("when all approve, both modes approve with the worst of the warnings [I-06]", async () => {
  for (const [mode, make] of modes) {
    const clean = await composite(make, child("a", {}), child("b", { score: 0.6 })).review(
      diff,
      options,
    );
    expect(clean, mode).toMatchObject({ approved: true, severity: "", score: 0.6 });
    const warned = await composite(make, child("a", { severity: "warn" }), child("b", {})).review(
      diff,
      options,
    );
    expect(warned, mode).toMatchObject({ approved: true, severity: "warn" });
  }
});

test("a child that approves and blocks at once is a no [I-06 I-03]", async () => {
  for (const [mode, make] of modes) {
    const next = child("next", {});
    const torn = child("torn", { severity: "block" });
    const verdict = await composite(make, torn, next).review(diff, options);
    expect(verdict, mode).toMatchObject({ approved: false, severity: "block" });
    expect(next.calls).toBe(mode === "waterfall" ? 0 : 1);
  }
});

test("an answer that is no verdict is an error, so nothing is approved by a broken child [I-06]", async () => {
  const nice = { approved: true, score: 1, reason: "", severity: "", policyVersion: "1" };
  const almost: readonly object[] = [
    { approved: "yes" },
    { approved: 1 },
    { score: Number.NaN },
    { score: Number.POSITIVE_INFINITY },
    { score: "1" },
    { severity: "fatal" },
    { reason: null },
    { policyVersion: undefined },
  ];
  const answers: readonly unknown[] = [
    ...[undefined, null, true, "approved", {}, { approved: true }],
    ...almost.map((change) => ({ ...nice, ...change })),
  ];
  for (const [mode, make] of modes) {
    for (const answer of answers) {
      const broken: Validator = { name: "broken", review: () => answer as Verdict };
      const review = composite(make, child("a", {}), broken).review(diff, options);
      await expect(review, `${mode} ${JSON.stringify(answer)}`).rejects.toThrow(/broken/);
    }
  }
});

test("a child that hangs or throws at once fails the review of both modes [I-06]", async () => {
  for (const [mode, make] of modes) {
    const stop = new AbortController();
    const hanging: Validator = { name: "slow", review: () => new Promise(() => {}) };
    const review = composite(make, hanging, child("b", {})).review(diff, { signal: stop.signal });
    stop.abort(new Error("over time"));
    await expect(review, mode).rejects.toThrow(/slow failed: over time/);
    const throwing: Validator = {
      name: "sync",
      review() {
        throw new Error("at once");
      },
    };
    await expect(composite(make, throwing).review(diff, options)).rejects.toThrow(/sync failed/);
  }
});

test("composites nest, and every policy version is in the reason [I-06]", async () => {
  const inner = allMustApprove({
    name: "inner",
    policyVersion: "3",
    validators: [child("a", {}), child("b", { severity: "warn", score: 0.4 })],
  });
  const outer = composite(waterfall, inner, child("c", {}));
  expect(await outer.review(diff, options)).toMatchObject({
    approved: true,
    severity: "warn",
    score: 0.4,
    reason:
      "inner@3 approved: a@7 approved: a says so; b@7 approved: b says so; c@7 approved: c says so",
  });
});

test("a composite of nothing would approve everything, so it cannot be made [I-08]", () => {
  for (const [mode, make] of modes) {
    const validators = [child("a", {})];
    expect(() => make({ name: "x", policyVersion: "1", validators }), mode).not.toThrow();
    expect(() => make({ name: "", policyVersion: "1", validators })).toThrow(TypeError);
    expect(() => make({ name: "x", policyVersion: "", validators })).toThrow(TypeError);
    for (const bad of [undefined, [], [undefined], [{ name: "a" }], [{ review() {} }]]) {
      expect(() => make({ name: "x", policyVersion: "1", validators: bad as never })).toThrow(
        TypeError,
      );
    }
  }
});
