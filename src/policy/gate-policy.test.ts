import { expect, test } from "vitest";
import type { Finding } from "../model/finding.ts";
import { GATE_POINTS } from "../model/finding.ts";
import { mergeFindings } from "./answers.ts";
import { type GatePolicy, type PolicyContext, runPolicies } from "./decide.ts";

const context: PolicyContext = {
  point: "pre-tool",
  tool: "t",
  payload: { list: [1, { deep: true }] },
};
const says = (
  name: string,
  findings: readonly Partial<Finding>[],
  points: GatePolicy["points"] = [],
): GatePolicy => ({
  name,
  points,
  check: () => findings.map((one) => ({ severity: "warning", policy: name, message: "m", ...one })),
});

test("the points are those named in public text [I-55]", () => {
  expect([...GATE_POINTS]).toEqual([
    "pre-tool",
    "post-tool",
    "pre-write",
    "post-write",
    "pre-verify-command",
    "pre-delegation",
    "post-delegation",
    "pre-phase-transition",
  ]);
});

test("every policy of the point is asked, an empty list means all points [I-56]", () => {
  const policies = [
    says("all", [{}]),
    says("mine", [{}], ["pre-tool", "pre-write"]),
    says("other", [{}], ["post-tool"]),
  ];
  const names = (point: PolicyContext["point"]) =>
    runPolicies(policies, { ...context, point }).map(({ policy }) => policy);
  expect(names("pre-tool")).toEqual(["all", "mine"]);
  expect(names("post-tool")).toEqual(["all", "other"]);
  expect(names("pre-delegation")).toEqual(["all"]);
});

test("duplicates by policy and message are removed, the most severe is kept [I-54 I-56]", () => {
  const twice = says("p", [
    { severity: "warning" },
    { severity: "soft-deny" },
    { severity: "warning" },
    { message: "other" },
  ]);
  expect(runPolicies([twice], context)).toEqual([
    { severity: "soft-deny", policy: "p", message: "m" },
    { severity: "warning", policy: "p", message: "other" },
  ]);
  const order = ["warning", "hard-deny", "evidence-required", "soft-deny"] as const;
  const findings = order.map((severity) => ({ severity, policy: "p", message: "m" }));
  expect(mergeFindings(findings)).toEqual([{ severity: "hard-deny", policy: "p", message: "m" }]);
  expect(
    mergeFindings([
      { severity: "warning", policy: "a", message: "b c" },
      { severity: "warning", policy: "a b", message: "c" },
    ]),
  ).toHaveLength(2);
});

test("a finding carries the name of its policy, not one that the policy chose [I-54]", () => {
  expect(runPolicies([says("me", [{ policy: "somebody-else" }])], context)[0]?.policy).toBe("me");
});

test("a policy that throws yields a hard denial in its own name, and the others still run [I-58]", () => {
  const thrown: readonly unknown[] = [
    new Error("boom"),
    "text",
    undefined,
    null,
    { toString: () => expect.unreachable() },
  ];
  for (const value of thrown) {
    const broken: GatePolicy = {
      name: "broken",
      points: [],
      check: () => {
        throw value;
      },
    };
    const findings = runPolicies([says("a", [{}]), broken, says("b", [{}])], context);
    expect(findings.map(({ policy, severity }) => `${policy} ${severity}`)).toEqual([
      "a warning",
      "broken hard-deny",
      "b warning",
    ]);
  }
});

test("a policy that does not return a list of findings is broken too [I-58]", () => {
  const odd: readonly unknown[] = [
    undefined,
    null,
    true,
    "fine",
    7,
    {},
    [undefined],
    [{}],
    [{ severity: "warning" }],
    [{ message: "m" }],
    Promise.resolve([]),
  ];
  for (const answer of odd) {
    const policy = { name: "odd", points: [], check: () => answer } as unknown as GatePolicy;
    expect(runPolicies([policy], context)).toMatchObject([
      { severity: "hard-deny", policy: "odd" },
    ]);
  }
});

test("a policy cannot change its context [I-53 I-57]", () => {
  const payload = { list: [1, { deep: true }] };
  const seen: unknown[] = [];
  const writer: GatePolicy = {
    name: "writer",
    points: [],
    check: (shown) => {
      (shown.payload as typeof payload).list[0] = 2;
      return [];
    },
  };
  const reader: GatePolicy = {
    name: "reader",
    points: [],
    check: (shown) => {
      seen.push(shown);
      return [];
    },
  };
  const findings = runPolicies([writer, reader], { ...context, payload });
  expect(findings).toMatchObject([{ severity: "hard-deny", policy: "writer" }]);
  expect(payload).toEqual({ list: [1, { deep: true }] });
  expect(Object.isFrozen(payload)).toBe(false);
  expect(seen).toEqual([{ ...context, payload }]);
});

test("only the fields that apply at the point are set [I-53]", () => {
  let seen: PolicyContext | undefined;
  const policy: GatePolicy = {
    name: "p",
    points: [],
    check: (shown) => {
      seen = shown;
      return [];
    },
  };
  runPolicies([policy], {
    point: "pre-phase-transition",
    phase: "ship",
    run: "r1",
    workingDirectory: "/w",
    role: "verify",
  });
  expect(seen).toEqual({
    point: "pre-phase-transition",
    phase: "ship",
    run: "r1",
    workingDirectory: "/w",
    role: "verify",
  });
});
