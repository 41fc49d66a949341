import { expect, test } from "vitest";
import type { FindingSeverity } from "../model/finding.ts";
import type { PolicyContext } from "../policy/gate-policy.ts";
import {
  type Authorisation,
  createGateRunner,
  type GateRun,
  type GateRunner,
} from "./gate-runner.ts";
import { type DelegationPlan, type ValidateOptions, validatePlan } from "./plan.ts";

const PLAN: DelegationPlan = {
  planId: "plan-1-0001",
  role: "research",
  task: "look",
  capsule: "a secret capsule",
  writePermission: "none",
  promiseId: "p-1",
  traceId: "t-1",
};
const caller = { sessionId: "s-1", actor: "agent:lead" };
const RUN = { id: "run-1", phase: "execute" } as const;

function gate(...severities: FindingSeverity[]) {
  const seen: PolicyContext[] = [];
  const runner: GateRunner = {
    async run(context, { traceId = "made" }) {
      seen.push(context);
      const findings = severities.map((severity) => ({ severity, policy: "p", message: "m" }));
      const allowed = !severities.some((severity) => severity !== "warning");
      return { traceId, point: context.point, findings, overridden: [], allowed };
    },
  };
  return { runner, seen };
}

const validate = (more: Partial<ValidateOptions> = {}, plan: Partial<DelegationPlan> = {}) =>
  validatePlan({ ...PLAN, ...plan }, { caller, ...more });

test("S3-34 the result lists errors, gate decision and a flag", async () => {
  const { runner } = gate("warning");
  expect(await validate({ gate: runner })).toEqual({
    allowed: true,
    errors: [],
    gate: {
      traceId: "t-1",
      point: "pre-delegation",
      findings: [{ severity: "warning", policy: "p", message: "m" }],
      overridden: [],
      allowed: true,
    },
  });
});

test("S3-25 authorisation errors come after structural ones", async () => {
  const { errors } = await validate({}, { role: "code", task: "" });
  expect(errors.map(({ policy }) => policy)).toEqual([
    "delegation.permission",
    "delegation.task",
    "delegation.authorisation",
  ]);
});

test("S3-26 S3-27 the gate sees working directory, run, role, plan id and task, and not the capsule", async () => {
  const { runner, seen } = gate();
  await validate({ gate: runner, run: RUN, workingDirectory: "/w" });
  expect(seen).toEqual([
    {
      point: "pre-delegation",
      workingDirectory: "/w",
      run: "run-1",
      phase: "execute",
      role: "research",
      payload: { planId: "plan-1-0001", task: "look" },
    },
  ]);
  expect(JSON.stringify(seen)).not.toContain("capsule");
});

test("S3-28 without a working directory it is the process's own", async () => {
  const { runner, seen } = gate();
  await validate({ gate: runner });
  expect(seen[0]?.workingDirectory).toBe(process.cwd());
});

const lifts: Authorisation = {
  evaluate: (run: GateRun) => ({ ...run, findings: [], allowed: true }),
};

test("S3-29 the gate's result goes through the authorisation model when there is one, and is bare otherwise", async () => {
  const { runner } = gate("soft-deny");
  expect((await validate({ gate: runner })).allowed).toBe(false);
  const lifted = await validate({ gate: runner, authorisation: lifts });
  expect(lifted.allowed).toBe(true);
  expect(lifted.gate?.findings).toEqual([]);
});

test("S3-30 an authorisation model without a gate has no effect", async () => {
  const never: Authorisation = { evaluate: () => expect.unreachable("it is not asked") };
  expect(await validate({ authorisation: never })).toEqual(await validate());
  const denied = await validate({ authorisation: lifts }, { task: "" });
  expect(denied).toMatchObject({ allowed: false, gate: undefined });
});

test("S3-31 the gate is run even when the plan is forbidden already", async () => {
  const { runner, seen } = gate();
  const verdict = await validate({ gate: runner }, { role: "code", task: "", capsule: "" });
  expect(verdict.allowed).toBe(false);
  expect(seen).toHaveLength(1);
  expect(verdict.gate?.allowed).toBe(true);
});

test("S3-32 without a gate there is no gate decision, and it does not block", async () => {
  expect(await validate()).toEqual({ allowed: true, errors: [], gate: undefined });
});

test("S3-33 a gate or an authorisation model that throws forbids: the validation rejects", async () => {
  const broken: GateRunner = { run: () => Promise.reject(new Error("gate down")) };
  await expect(validate({ gate: broken })).rejects.toThrow("gate down");
  const { runner } = gate();
  const thrower: Authorisation = {
    evaluate() {
      throw new Error("model down");
    },
  };
  await expect(validate({ gate: runner, authorisation: thrower })).rejects.toThrow("model down");
});

test("S3-35 any hard denial forbids, and so does a gate that says no", async () => {
  expect((await validate({}, { task: "" })).allowed).toBe(false);
  expect((await validate({}, { promiseId: "" })).allowed).toBe(false);
  for (const severity of ["hard-deny", "soft-deny", "evidence-required"] as const) {
    expect((await validate({ gate: gate(severity).runner })).allowed, severity).toBe(false);
  }
  expect((await validate({ gate: gate("warning").runner })).allowed).toBe(true);
});

test("S3-36 a soft denial alone does not forbid and is still reported", async () => {
  const verdict = await validate({}, { writePermission: "plan-approved-files" });
  expect(verdict.allowed).toBe(true);
  expect(verdict.errors).toMatchObject([{ severity: "soft-deny" }]);
});

test("S3-37 what the structural check found is not shown to the authorisation model", async () => {
  const seen: GateRun[] = [];
  const watching: Authorisation = {
    evaluate(run) {
      seen.push(run);
      return run;
    },
  };
  const { runner } = gate("warning");
  const odd = { writePermission: "plan-approved-files" } as const;
  const { errors } = await validate({ gate: runner, authorisation: watching }, odd);
  expect(errors).toHaveLength(1);
  expect(seen.map(({ findings }) => findings)).toEqual([
    [{ severity: "warning", policy: "p", message: "m" }],
  ]);
});

test("S3-38 a gate's no forbids a perfect plan, and a gate's yes rescues no hard denial", async () => {
  expect((await validate({ gate: gate("hard-deny").runner })).allowed).toBe(false);
  const { runner } = gate();
  const verdict = await validate({ gate: runner, authorisation: lifts }, { capsule: " " });
  expect(verdict.gate?.allowed).toBe(true);
  expect(verdict.allowed).toBe(false);
});

test("S3-13 the plan's trace is the trace of its own evaluation", async () => {
  const told: string[] = [];
  const runner = createGateRunner({
    policies: [],
    ledger: { record: async ({ traceId }) => void told.push(traceId) },
    newTraceId: () => "another",
    onProblem: () => expect.unreachable(),
  });
  const { gate: run } = await validate({ gate: runner });
  expect([run?.traceId, ...told]).toEqual(["t-1", "t-1"]);
});
