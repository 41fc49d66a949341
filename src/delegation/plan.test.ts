import { describe, expect, test } from "vitest";
import { AGENT_ROLES, type AgentRole, DEFAULT_PERMISSION, PHASES } from "../model/delegation.ts";
import { type FindingSeverity, GATE_POINTS, type Grant } from "../model/finding.ts";
import type { GatePolicy, PolicyContext } from "../policy/decide.ts";
import type { GateEvaluation } from "../store/grants.ts";
import { manualClock } from "../util/clock.ts";
import {
  type Authorisation,
  createActionPlan,
  createGateRunner,
  createPlan,
  type DelegationPlan,
  type GateRun,
  type GateRunner,
  grantAuthorisation,
  type PlanDraft,
  type ValidateOptions,
  validatePlan,
} from "./plan.ts";

const caller = { sessionId: "s-1", actor: "agent:lead" };

describe("createPlan", () => {
  const MS = 1_763_200_000_000;
  const sources = (...list: number[]) => ({
    clock: manualClock(MS),
    random: { bytes: () => new Uint8Array(list) },
  });
  const draft: PlanDraft = {
    role: "research",
    task: "find the cause",
    capsule: "the log says no",
    promiseId: "p-1",
    traceId: "t-1",
  };

  test("a plan has its id, role, task, capsule, write permission, promise and trace [S3-08]", () => {
    expect(createPlan(draft, sources(0xab, 0xcd))).toEqual({
      ...draft,
      planId: `plan-${MS}-abcd`,
      writePermission: "none",
    });
  });

  test("the id is plan, milliseconds and four lower-case hex digits, padded with zeros [S3-09]", () => {
    const id = (...list: number[]) => createPlan(draft, sources(...list)).planId;
    expect(id(0, 0)).toBe(`plan-${MS}-0000`);
    expect(id(0, 7)).toBe(`plan-${MS}-0007`);
    expect(id(0, 0xff)).toBe(`plan-${MS}-00ff`);
    expect(id(0xff, 0xff)).toBe(`plan-${MS}-ffff`);
  });

  test("two plans of one millisecond may have the same id [S3-10]", () => {
    expect(createPlan(draft, sources(1, 2)).planId).toBe(createPlan(draft, sources(1, 2)).planId);
  });

  test("the permission follows from the role unless one is given [S3-11]", () => {
    const given = (more: Partial<PlanDraft>) =>
      createPlan({ ...draft, ...more }, sources(0, 1)).writePermission;
    expect(given({ role: "doc" })).toBe("docs-and-current-phase-artifact");
    expect(given({ role: "verify" })).toBe("evidence-through-kd_verify_result");
    expect(given({ role: "code", writePermission: "none" })).toBe("none");
  });

  test("all fields are kept as given, including invalid ones [S3-12]", () => {
    const invalid = { ...draft, task: "  \n", capsule: "", promiseId: "", traceId: " " };
    expect(createPlan(invalid, sources(0, 1))).toMatchObject(invalid);
  });

  test("an action plan for one step has an id of the same form [I-61]", () => {
    const action = { action: "edit a.ts", doneWhen: "it compiles" };
    expect(createActionPlan(action, sources(0, 9))).toEqual({
      planId: `plan-${MS}-0009`,
      ...action,
    });
  });
});

const planOf = (more: Partial<DelegationPlan> = {}): DelegationPlan => ({
  planId: "plan-1-0001",
  role: "research",
  task: "look",
  capsule: "a secret capsule",
  writePermission: DEFAULT_PERMISSION[more.role ?? "research"],
  promiseId: "p-1",
  traceId: "t-1",
  ...more,
});
const validate = (more: Partial<ValidateOptions> = {}, plan: Partial<DelegationPlan> = {}) =>
  validatePlan(planOf(plan), { caller, ...more });

describe("errors of a plan", () => {
  const errorsOf = async (plan: Partial<DelegationPlan>, run?: ValidateOptions["run"]) =>
    (await validate({ run }, plan)).errors;
  const RUN_ID = "run-1";

  test("a permission other than the role's is one soft denial naming role, expected and given [S3-15]", async () => {
    const errors = await errorsOf({ role: "review", writePermission: "plan-approved-files-only" });
    expect(errors).toMatchObject([{ severity: "soft-deny" }]);
    expect(errors[0]?.message).toMatch(/review.*none.*plan-approved-files-only/);
  });

  test.each(["", " ", "\n\t \u00a0"])(
    "a blank task %j is one hard denial [S3-16]",
    async (task) => {
      expect(await errorsOf({ task })).toMatchObject([{ severity: "hard-deny" }]);
    },
  );

  test.each(["", " ", "\n\t \u00a0"])(
    "a blank capsule %j is one hard denial [S3-17]",
    async (capsule) => {
      expect(await errorsOf({ capsule })).toMatchObject([{ severity: "hard-deny" }]);
    },
  );

  test("errors add up in the order permission, task, capsule, all at pre-delegation; a valid plan has none [S3-18 S3-19]", async () => {
    for (const role of AGENT_ROLES) {
      expect(await errorsOf({ role }, { id: RUN_ID, phase: "execute" })).toEqual([]);
    }
    const blank = { task: " ", capsule: "" };
    const errors = await errorsOf({ ...blank, writePermission: "plan-approved-files-only" });
    expect(errors.map(({ severity, policy, point }) => ({ severity, policy, point }))).toEqual([
      { severity: "soft-deny", policy: "delegation.permission", point: "pre-delegation" },
      { severity: "hard-deny", policy: "delegation.task", point: "pre-delegation" },
      { severity: "hard-deny", policy: "delegation.capsule", point: "pre-delegation" },
    ]);
    expect(await errorsOf(blank)).toHaveLength(2);
  });

  test("the check does not change the plan [S3-20]", async () => {
    const given = planOf({ task: " ", writePermission: "evidence-through-kd_verify_result" });
    const before = structuredClone(given);
    await validatePlan(Object.freeze(given), { caller });
    expect(given).toEqual(before);
  });

  test("an unknown role is a hard denial", async () => {
    const errors = await errorsOf({ role: "admin" as AgentRole, writePermission: "none" });
    expect(errors).toMatchObject([{ severity: "hard-deny", policy: "delegation.role" }]);
  });

  test("a plan without a promise or without a trace is denied [S3-13 S3-14]", async () => {
    expect(await errorsOf({})).toEqual([]);
    expect(await errorsOf({ promiseId: "" })).toMatchObject([
      { severity: "hard-deny", policy: "delegation.promise" },
    ]);
    expect(await errorsOf({ traceId: " " })).toMatchObject([
      { severity: "hard-deny", policy: "delegation.trace" },
    ]);
    expect(await errorsOf({ traceId: "", promiseId: "" })).toHaveLength(2);
  });

  test("code without a run is a hard denial [S3-21]", async () => {
    const errors = await errorsOf({ role: "code" });
    expect(errors).toMatchObject([{ severity: "hard-deny", point: "pre-delegation" }]);
  });

  test.each(PHASES.filter((phase) => phase !== "execute"))(
    "code in the phase %s is a hard denial that names the phase [S3-22]",
    async (phase) => {
      const errors = await errorsOf({ role: "code" }, { id: RUN_ID, phase });
      expect(errors).toMatchObject([{ severity: "hard-deny" }]);
      expect(errors[0]?.message).toContain(phase);
    },
  );

  test("code in the phase execute is allowed [S3-23]", async () => {
    expect(await errorsOf({ role: "code" }, { id: RUN_ID, phase: "execute" })).toEqual([]);
  });

  test.each(AGENT_ROLES.filter((role) => role !== "code"))(
    "the role %s needs neither a run nor a phase [S3-24]",
    async (role) => {
      expect(await errorsOf({ role })).toEqual([]);
      for (const phase of PHASES)
        expect(await errorsOf({ role }, { id: RUN_ID, phase })).toEqual([]);
    },
  );
});

describe("validatePlan with a gate", () => {
  function gateOf(...severities: FindingSeverity[]) {
    const seen: PolicyContext[] = [];
    const gate: GateRunner = {
      async run(context, { traceId = "made" }) {
        seen.push(context);
        const findings = severities.map((severity) => ({ severity, policy: "p", message: "m" }));
        const allowed = !severities.some((severity) => severity !== "warning");
        return { traceId, point: context.point, findings, overridden: [], allowed };
      },
    };
    return { gate, seen };
  }
  const WARNING = { severity: "warning", policy: "p", message: "m" };
  const lifts: Authorisation = {
    evaluate: (run: GateRun) => ({ ...run, findings: [], allowed: true }),
  };

  test("the result has errors, the gate's run and a flag [S3-34]", async () => {
    expect(await validate({ gate: gateOf("warning").gate })).toEqual({
      allowed: true,
      errors: [],
      gate: {
        traceId: "t-1",
        point: "pre-delegation",
        findings: [WARNING],
        overridden: [],
        allowed: true,
      },
    });
  });

  test("authorisation errors come after structural ones [S3-25]", async () => {
    const { errors } = await validate({}, { role: "code", task: "", writePermission: "none" });
    expect(errors.map(({ policy }) => policy)).toEqual([
      "delegation.permission",
      "delegation.task",
      "delegation.authorisation",
    ]);
  });

  test("the gate sees working directory, run, role, plan id and task, and not the capsule [S3-26 S3-27]", async () => {
    const { gate, seen } = gateOf();
    await validate({ gate, run: { id: "run-1", phase: "execute" }, workingDirectory: "/w" });
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

  test("the working directory defaults to the process's own [S3-28]", async () => {
    const { gate, seen } = gateOf();
    await validate({ gate });
    expect(seen[0]?.workingDirectory).toBe(process.cwd());
  });

  test("the authorisation model, if there is one, judges the gate's result [S3-29]", async () => {
    const { gate } = gateOf("soft-deny");
    expect((await validate({ gate })).allowed).toBe(false);
    const lifted = await validate({ gate, authorisation: lifts });
    expect(lifted.allowed).toBe(true);
    expect(lifted.gate?.findings).toEqual([]);
  });

  test("an authorisation model without a gate has no effect [S3-30]", async () => {
    const never: Authorisation = { evaluate: () => expect.unreachable("it is not asked") };
    expect(await validate({ authorisation: never })).toEqual(await validate());
    const denied = await validate({ authorisation: lifts }, { task: "" });
    expect(denied).toMatchObject({ allowed: false, gate: undefined });
  });

  test("the gate is run even if the plan is denied already [S3-31]", async () => {
    const { gate, seen } = gateOf();
    const verdict = await validate({ gate }, { role: "code", task: "", capsule: "" });
    expect(verdict.allowed).toBe(false);
    expect(seen).toHaveLength(1);
    expect(verdict.gate?.allowed).toBe(true);
  });

  test("without a gate there is no gate run, which does not deny the plan [S3-32]", async () => {
    expect(await validate()).toEqual({ allowed: true, errors: [], gate: undefined });
  });

  test.each([undefined, null, 0, 1, "true"])(
    "a gate or an authorisation model that answers allowed: %j denies the plan [S3-34]",
    async (allowed) => {
      const odd = { allowed } as unknown as Pick<GateRun, "allowed">;
      const { gate: good } = gateOf();
      const gate: GateRunner = {
        run: async (context, by) => ({ ...(await good.run(context, by)), ...odd }),
      };
      expect(await validate({ gate })).toMatchObject({ allowed: false });
      const authorisation: Authorisation = { evaluate: (run: GateRun) => ({ ...run, ...odd }) };
      expect(await validate({ gate: good, authorisation })).toMatchObject({ allowed: false });
    },
  );

  test("the validation rejects if the gate or the authorisation model throws [S3-33]", async () => {
    const broken: GateRunner = { run: () => Promise.reject(new Error("gate down")) };
    await expect(validate({ gate: broken })).rejects.toThrow("gate down");
    const thrower: Authorisation = {
      evaluate() {
        throw new Error("model down");
      },
    };
    const { gate } = gateOf();
    await expect(validate({ gate, authorisation: thrower })).rejects.toThrow("model down");
  });

  test("a hard denial or a blocking finding of the gate denies the plan [S3-35]", async () => {
    expect((await validate({}, { task: "" })).allowed).toBe(false);
    expect((await validate({}, { promiseId: "" })).allowed).toBe(false);
    for (const severity of ["hard-deny", "soft-deny", "evidence-required"] as const) {
      expect((await validate(gateOf(severity))).allowed, severity).toBe(false);
    }
    expect((await validate(gateOf("warning"))).allowed).toBe(true);
  });

  test("a soft denial of the plan is reported and does not deny it [S3-36]", async () => {
    const verdict = await validate({}, { writePermission: "plan-approved-files-only" });
    expect(verdict.allowed).toBe(true);
    expect(verdict.errors).toMatchObject([{ severity: "soft-deny" }]);
  });

  test("the authorisation model does not see structural errors [S3-37]", async () => {
    const seen: GateRun[] = [];
    const watching: Authorisation = {
      evaluate(run) {
        seen.push(run);
        return run;
      },
    };
    const { gate } = gateOf("warning");
    const unusual = { writePermission: "plan-approved-files-only" } as const;
    const { errors } = await validate({ gate, authorisation: watching }, unusual);
    expect(errors).toHaveLength(1);
    expect(seen.map(({ findings }) => findings)).toEqual([[WARNING]]);
  });

  test("the gate can deny a valid plan and cannot lift a hard denial [S3-38]", async () => {
    expect((await validate(gateOf("hard-deny"))).allowed).toBe(false);
    const verdict = await validate({ ...gateOf(), authorisation: lifts }, { capsule: " " });
    expect(verdict.gate?.allowed).toBe(true);
    expect(verdict.allowed).toBe(false);
  });

  test("the plan's trace is the trace of its own evaluation [S3-13]", async () => {
    const { runner, ledger } = runnerOf([]);
    const { gate: run } = await validate({ gate: runner });
    expect([run?.traceId, ...ledger.map(({ traceId }) => traceId)]).toEqual(["t-1", "t-1"]);
  });
});

const says = (name: string, severity: "soft-deny" | "warning" | "hard-deny"): GatePolicy => ({
  name,
  points: [],
  check: () => [{ severity, policy: name, message: "m" }],
});

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

/** A policy that finds nothing and keeps what it was asked about. */
function reader() {
  const seen: PolicyContext[] = [];
  const policy: GatePolicy = {
    name: "reader",
    points: [],
    check(context) {
      seen.push(context);
      return [];
    },
  };
  return { policy, seen };
}

describe("gate runner", () => {
  test("every evaluation has its own trace id and its findings, and is recorded in the ledger [I-54 I-56]", async () => {
    const { runner, ledger } = runnerOf([says("a", "warning"), says("b", "soft-deny")]);
    for (const [index, point] of GATE_POINTS.entries()) {
      const run = await runner.run({ point }, caller);
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
      expect(ledger.at(-1)).toEqual({ ...run, ...caller });
    }
    expect(ledger).toHaveLength(GATE_POINTS.length);
    const { runner: mild } = runnerOf([says("a", "warning")]);
    expect((await mild.run({ point: "pre-tool" }, caller)).allowed).toBe(true);
  });

  test("a failing ledger is reported and changes neither a yes nor a no [I-56]", async () => {
    const problems: unknown[] = [];
    const options = {
      ledger: { record: () => Promise.reject(new Error("disk full")) },
      newTraceId: () => "t",
      onProblem: (problem: unknown) => void problems.push(problem),
    };
    const yes = createGateRunner({ ...options, policies: [] });
    const no = createGateRunner({ ...options, policies: [says("a", "hard-deny")] });
    expect((await yes.run({ point: "pre-delegation" }, caller)).allowed).toBe(true);
    expect((await no.run({ point: "pre-delegation" }, caller)).allowed).toBe(false);
    const problem = { traceId: "t", error: new Error("disk full") };
    expect(problems).toEqual([problem, problem]);
  });

  test("a policy that throws or changes the shared context is a hard denial in its name [I-58 I-57]", async () => {
    const broken: GatePolicy = {
      name: "broken",
      points: ["pre-phase-transition"],
      check(context) {
        (context.payload as { list: number[] }).list.push(1);
        return [];
      },
    };
    const { policy, seen } = reader();
    const point = "pre-phase-transition";
    const context = { point, phase: "ship", payload: { list: [] } } as const;
    const run = await runnerOf([broken, policy]).runner.run(context, caller);
    expect(run).toMatchObject({
      allowed: false,
      findings: [{ severity: "hard-deny", policy: "broken" }],
    });
    expect(seen).toEqual([context]);
  });

  test("policies see only the fields of the point, and not the caller [I-53]", async () => {
    const { policy, seen } = reader();
    const context = { point: "post-delegation", role: "code", run: "run-1" } as const;
    await runnerOf([policy]).runner.run(context, caller);
    expect(seen).toEqual([context]);
  });

  test("a grant lifts a soft denial until it expires, and never a hard one [I-59]", async () => {
    const context = { point: "pre-delegation" } as const;
    const both = runnerOf([says("soft", "soft-deny"), says("hard", "hard-deny")]);
    const bare = await both.runner.run(context, caller);
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
    expect(await at(1000, "soft")).toMatchObject({ allowed: false, overridden: [] });
    const soft = await runnerOf([says("soft", "soft-deny")]).runner.run(context, caller);
    const lifted = await grantAuthorisation([grant("soft")], 1).evaluate(soft, context);
    expect(lifted).toMatchObject({ allowed: true, findings: [] });
  });
});
