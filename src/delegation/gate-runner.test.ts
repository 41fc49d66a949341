import { expect, test } from "vitest";
import { GATE_POINTS, type Grant } from "../model/finding.ts";
import type { GatePolicy, PolicyContext } from "../policy/gate-policy.ts";
import type { GateEvaluation } from "../store/gate-ledger.ts";
import { createGateRunner, grantAuthorisation } from "./gate-runner.ts";

const says = (name: string, severity: "soft-deny" | "warning" | "hard-deny"): GatePolicy => ({
  name,
  points: [],
  check: () => [{ severity, policy: name, message: "m" }],
});
const by = { sessionId: "s-1", actor: "agent:lead" };

function runnerOf(policies: readonly GatePolicy[]) {
  const ledger: GateEvaluation[] = [];
  let traces = 0;
  const runner = createGateRunner({
    policies,
    ledger: { record: async (one) => void ledger.push(one) },
    newTraceId: () => `trace-${++traces}`,
    onProblem: () => expect.unreachable(),
  });
  return { runner, ledger };
}

test("I-54 I-56 every evaluation has a trace id of its own, sums up its findings and is written to the ledger", async () => {
  const { runner, ledger } = runnerOf([says("a", "warning"), says("b", "soft-deny")]);
  for (const [index, point] of GATE_POINTS.entries()) {
    const run = await runner.run({ point }, by);
    expect(run).toEqual({
      traceId: `trace-${index + 1}`,
      point,
      findings: [
        { severity: "warning", policy: "a", message: "m" },
        { severity: "soft-deny", policy: "b", message: "m" },
      ],
      overridden: [],
      allowed: false,
    });
    expect(ledger.at(-1)).toEqual({ ...run, ...by });
  }
  expect(ledger).toHaveLength(GATE_POINTS.length);
  const { runner: mild } = runnerOf([says("a", "warning")]);
  expect((await mild.run({ point: "pre-tool" }, by)).allowed).toBe(true);
});

test("I-56 a failing ledger does not block the decision, in neither direction, and is told", async () => {
  const problems: unknown[] = [];
  const options = {
    ledger: { record: () => Promise.reject(new Error("disk full")) },
    newTraceId: () => "t",
    onProblem: (problem: unknown) => void problems.push(problem),
  };
  const yes = createGateRunner({ ...options, policies: [] });
  const no = createGateRunner({ ...options, policies: [says("a", "hard-deny")] });
  expect((await yes.run({ point: "pre-delegation" }, by)).allowed).toBe(true);
  expect((await no.run({ point: "pre-delegation" }, by)).allowed).toBe(false);
  expect(problems).toEqual([
    { traceId: "t", error: new Error("disk full") },
    { traceId: "t", error: new Error("disk full") },
  ]);
});

test("I-58 I-57 a policy that throws is a hard denial in its name; one context for all, which none can change", async () => {
  const seen: PolicyContext[] = [];
  const broken: GatePolicy = {
    name: "broken",
    points: ["pre-phase-transition"],
    check(context) {
      (context.payload as { list: number[] }).list.push(1);
      return [];
    },
  };
  const reader: GatePolicy = {
    name: "reader",
    points: [],
    check(context) {
      seen.push(context);
      return [];
    },
  };
  const context = { point: "pre-phase-transition", phase: "ship", payload: { list: [] } } as const;
  const { runner } = runnerOf([broken, reader]);
  const run = await runner.run(context, by);
  expect(run).toMatchObject({
    allowed: false,
    findings: [{ severity: "hard-deny", policy: "broken" }],
  });
  expect(seen).toEqual([context]);
});

test("I-53 only what fits the point is filled, and who asks is not shown to policies", async () => {
  const seen: PolicyContext[] = [];
  const reader: GatePolicy = {
    name: "r",
    points: [],
    check(context) {
      seen.push(context);
      return [];
    },
  };
  const { runner } = runnerOf([reader]);
  await runner.run({ point: "post-delegation", role: "code", run: "run-1" }, by);
  expect(seen).toEqual([{ point: "post-delegation", role: "code", run: "run-1" }]);
});

test("I-59 grants lift what they may: a soft denial yes, a hard one never", async () => {
  const { runner } = runnerOf([says("soft", "soft-deny"), says("hard", "hard-deny")]);
  const context = { point: "pre-delegation" } as const;
  const bare = await runner.run(context, by);
  const grant = (policy: string): Grant => ({
    id: "AUTH001",
    finding: { policy, message: "m" },
    grantor: "user",
    scope: { kind: "finding" },
    expiresAt: 1000,
  });
  const at = (now: number, ...policies: string[]) =>
    grantAuthorisation(policies.map(grant), now).evaluate(bare, context);
  expect(await at(999, "soft", "hard")).toMatchObject({
    allowed: false,
    findings: [{ policy: "hard" }],
    overridden: [{ grant: "AUTH001", finding: { policy: "soft" } }],
  });
  // Lapsed.
  expect(await at(1000, "soft")).toMatchObject({ allowed: false, overridden: [] });
  const { runner: soft } = runnerOf([says("soft", "soft-deny")]);
  const lifted = grantAuthorisation([grant("soft")], 1).evaluate(
    await soft.run(context, by),
    context,
  );
  expect(await lifted).toMatchObject({ allowed: true, findings: [] });
});
