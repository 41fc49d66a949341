import { describe, expect, test } from "vitest";
import {
  effectiveSeverity,
  MAX_REASON,
  NO_VERDICT,
  type Verdict,
  verdictProblem,
} from "./decision.ts";

const good: Verdict = {
  approved: true,
  score: 0.5,
  reason: "fits",
  severity: "warn",
  validator: "v",
  policyVersion: "p1",
};

describe("the zero verdict", () => {
  test("is recognisable by its empty validator name [S0-23]", () => {
    expect(NO_VERDICT.validator).toBe("");
    expect(verdictProblem(NO_VERDICT), "no validator gives it").toContain("validator");
  });

  test("approves nothing and cannot be changed by anybody who holds it [S0-23]", () => {
    expect(NO_VERDICT).toEqual({
      approved: false,
      score: 0,
      reason: "",
      severity: "",
      validator: "",
      policyVersion: "",
    });
    expect(Object.isFrozen(NO_VERDICT)).toBe(true);
  });

  test("is no verdict that can be stored, since it would look unreviewed [S0-45]", () => {
    expect(verdictProblem(NO_VERDICT)).toContain("validator");
  });
});

test.each([
  ["", "warn"],
  ["warn", "warn"],
  ["block", "block"],
] as const)("severity %j counts as %s", (severity, effective) => {
  expect(effectiveSeverity(severity)).toBe(effective);
});

describe("problems", () => {
  test.each([
    ["as it is", {}],
    ["approved with a warning [S0-43]", { severity: "warn" }],
    [
      "refused with a score and a warning [S0-52]",
      { approved: false, score: 0.3, severity: "warn" },
    ],
    ["without a severity", { severity: "" }],
    ["without a reason and policy", { reason: "", policyVersion: "" }],
    ["with the longest reason", { reason: "x".repeat(MAX_REASON) }],
    ["with a score of minus a billion", { score: -1e9 }],
  ] as const)("none: %s", (_what, over) => {
    expect(verdictProblem({ ...good, ...over })).toBeUndefined();
  });

  test.each([
    ["approved", { approved: 1 }],
    ["approved", { approved: "true" }],
    ["approved", { approved: undefined }],
    ["score", { score: Number.NaN }],
    ["score", { score: Number.POSITIVE_INFINITY }],
    ["score", { score: "0.9" }],
    ["score", { score: 1e9 + 1 }],
    ["reason", { reason: null }],
    ["reason", { reason: "x".repeat(MAX_REASON + 1) }],
    ["severity", { severity: "BLOCK" }],
    ["severity", { severity: undefined }],
    ["policyVersion", { policyVersion: 3 }],
    ["validator", { validator: "" }],
    ["validator", { validator: undefined }],
  ])("%s: case %#", (field, over) => {
    expect(verdictProblem({ ...good, ...over } as Verdict)).toContain(field);
  });

  test.each([undefined, null, "yes", true, 1])("%s is no object", (value) => {
    expect(verdictProblem(value as unknown as Verdict)).toBe("A verdict is an object");
  });
});
