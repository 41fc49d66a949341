import { expect, test } from "vitest";
import type { ReviewRequest } from "../../model/decision.ts";
import { reviewRequest } from "../review.ts";
import { decodeJson, type Objection, rulesValidator, type ValidatorRule } from "./rules.ts";

const options = { signal: new AbortController().signal };

function diffOf(payload: string | Uint8Array, sourceTool = "sql.update"): ReviewRequest {
  const raw = typeof payload === "string" ? new TextEncoder().encode(payload) : payload;
  return reviewRequest({ sourceTool, raw, metadata: { ticket: "T-1" } });
}

function rule(name: string, objection?: Objection): ValidatorRule {
  return { name, check: () => objection };
}

function validator(...rules: readonly ValidatorRule[]) {
  return rulesValidator({ name: "limits", policyVersion: "2026-11", rules });
}

test("a validator has a name and one review call that takes a diff and answers with a verdict [I-01]", async () => {
  const limits = validator(rule("a"));
  expect(limits.name).toBe("limits");
  const verdict = await limits.review(diffOf("{}"), options);
  expect(verdict.approved).toBe(true);
});

test("a verdict has six fields, name and policy version included [I-02]", async () => {
  const verdict = await validator(rule("a"), rule("b")).review(diffOf("{}"), options);
  expect(verdict).toEqual({
    approved: true,
    score: 1,
    reason: "all 2 rules passed",
    severity: "",
    validator: "limits",
    policyVersion: "2026-11",
  });
});

test("a block refuses, and every rule is heard [I-05]", async () => {
  const verdict = await validator(
    rule("size", { severity: "block", reason: "too large" }),
    rule("fine"),
    rule("style", { severity: "warn", reason: "no comment", score: 0.4 }),
    rule("place", { severity: "block", reason: "wrong table", score: 0.2 }),
    rule("late", { severity: "warn", reason: "on a Friday", score: 0.9 }),
  ).review(diffOf("{}"), options);
  expect(verdict).toMatchObject({
    approved: false,
    severity: "block",
    score: 0,
    reason: "size: too large; style: no comment; place: wrong table; late: on a Friday",
  });
});

test("a warning does not stop the decision; its reason and its score are kept [I-03 S0-52]", async () => {
  const poor = rule("plan", {
    severity: "warn",
    reason: "it runs but the plan is poor",
    score: 0.3,
  });
  const mild = rule("style", { severity: "warn", reason: "no comment" });
  const verdict = await validator(mild, poor).review(diffOf("{}"), options);
  expect(verdict).toMatchObject({
    approved: true,
    severity: "warn",
    score: 0.3,
    reason: "style: no comment; plan: it runs but the plan is poor",
  });
  expect(await validator(mild).review(diffOf("{}"), options)).toMatchObject({ score: 1 });
});

test("a rule sees source tool, raw bytes and metadata as they are and decodes what it likes [I-04]", async () => {
  const seen: ReviewRequest[] = [];
  const binary = new Uint8Array([0xff, 0x00, 0xfe]);
  const byTool: ValidatorRule = {
    name: "by tool",
    check(diff) {
      seen.push(diff);
      if (diff.sourceTool !== "sql.update") return undefined;
      const order = decodeJson(diff) as { cents: number };
      return order.cents > 100 ? { severity: "block", reason: `${order.cents} cents` } : undefined;
    },
  };
  const limits = validator(byTool);
  const opaque = diffOf(binary, "blob.put");
  expect((await limits.review(opaque, options)).approved).toBe(true);
  expect(seen[0]).toBe(opaque);
  expect((await limits.review(diffOf('{"cents":100}'), options)).approved).toBe(true);
  expect((await limits.review(diffOf('{"cents":101}'), options)).reason).toBe("by tool: 101 cents");
});

test("decodeJson is strict, so that a rule and the executor cannot read two different payloads [I-04]", () => {
  expect(decodeJson(diffOf('{"a":[1,2]}'))).toEqual({ a: [1, 2] });
  const bad = ['{"cents":1,"cents":1000}', "{", "", "NaN", "[9007199254740993]", '"\\ud800"'];
  for (const text of bad) expect(() => decodeJson(diffOf(text)), text).toThrow(/JSON refused/);
  expect(() => decodeJson(diffOf(new Uint8Array([0xff])))).toThrow(/UTF-8/);
  expect(() => decodeJson(diffOf("[[[]]]"), { maxDepth: 2 })).toThrow(/nested/);
});

test("a rule that throws fails the review, with its name and the cause, whatever others said [I-05 I-01]", async () => {
  const cause = new Error("no such column");
  const throwing: ValidatorRule = {
    name: "columns",
    check() {
      throw cause;
    },
  };
  const rejecting: ValidatorRule = { name: "columns", check: () => Promise.reject(cause) };
  for (const broken of [throwing, rejecting]) {
    const review = validator(rule("fine"), broken).review(diffOf("{}"), options);
    await expect(review).rejects.toMatchObject({
      message: 'Rule "columns" of validator "limits" failed: no such column',
      cause,
    });
  }
});

test("an answer that is no objection is a failure and never a pass [I-05]", async () => {
  const odd: readonly unknown[] = [
    null,
    false,
    true,
    "",
    "no",
    0,
    {},
    [],
    { severity: "Block", reason: "x" },
    { severity: "", reason: "x" },
    { reason: "x" },
    { severity: "warn" },
    { severity: "warn", reason: "" },
    { severity: "warn", reason: 1 },
    ...[Number.NaN, Number.POSITIVE_INFINITY, -0.1, 1.1, "1", null, {}].map((score) => ({
      severity: "warn",
      reason: "x",
      score,
    })),
  ];
  for (const answer of odd) {
    const review = validator({ name: "odd", check: () => answer as never }).review(
      diffOf("{}"),
      options,
    );
    await expect(review, JSON.stringify(answer)).rejects.toThrow(/Rule "odd"/);
  }
});

test("a rule that hangs ends with the signal, and no further rule is asked [I-01]", async () => {
  const stop = new AbortController();
  let asked = 0;
  const hanging: ValidatorRule = { name: "slow", check: () => new Promise(() => {}) };
  const next: ValidatorRule = {
    name: "next",
    check() {
      asked += 1;
      return undefined;
    },
  };
  const review = validator(hanging, next).review(diffOf("{}"), { signal: stop.signal });
  stop.abort(new Error("over time"));
  await expect(review).rejects.toThrow(/Rule "slow".*over time/);
  expect(asked).toBe(0);
});

test("one long reason does not crowd out the next, and the record stays storable [I-05]", async () => {
  const long = rule("long", { severity: "warn", reason: "x".repeat(100_000) });
  const verdict = await validator(long, rule("short", { severity: "block", reason: "no" })).review(
    diffOf("{}"),
    options,
  );
  expect(verdict.reason.length).toBeLessThan(2100);
  expect(verdict.reason).toMatch(/; short: no$/);
});

test("a rules validator without its parts cannot be made [I-08]", () => {
  const rules = [rule("a")];
  const make = (change: object) => () =>
    rulesValidator({ name: "v", policyVersion: "1", rules, ...change });
  expect(make({})).not.toThrow();
  for (const name of ["", " ", undefined, 1]) expect(make({ name })).toThrow(TypeError);
  for (const policyVersion of ["", undefined]) expect(make({ policyVersion })).toThrow(TypeError);
  for (const bad of [undefined, [], [{}], [null], [{ name: "a" }], [{ check() {} }]]) {
    expect(make({ rules: bad })).toThrow(TypeError);
  }
  expect(make({ rules: [rule("a"), rule("a")] })).toThrow("same name");
});
