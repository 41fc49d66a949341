import { expect, test } from "vitest";
import { DEFAULT_PERMISSION, ROLES, type Role } from "../model/delegation.ts";
import { PHASES } from "../model/run.ts";
import { checkAuthorisation, checkBinding, checkStructure, type DelegationPlan } from "./plan.ts";

const plan = (more: Partial<DelegationPlan> = {}): DelegationPlan => ({
  planId: "plan-1-0001",
  role: "research",
  task: "look",
  capsule: "all there is to know",
  writePermission: DEFAULT_PERMISSION[more.role ?? "research"],
  promiseId: "p-1",
  traceId: "t-1",
  ...more,
});

test("S3-15 a permission that differs from the role's gives one soft denial with role, expected and received", () => {
  const errors = checkStructure(plan({ role: "review", writePermission: "plan-approved-files" }));
  expect(errors).toHaveLength(1);
  expect(errors[0]?.severity).toBe("soft-deny");
  expect(errors[0]?.message).toContain("review");
  expect(errors[0]?.message).toContain("none");
  expect(errors[0]?.message).toContain("plan-approved-files");
});

test.each(["", " ", "\n\t \u00a0"])("S3-16 the task %j is empty: one hard denial", (task) => {
  expect(checkStructure(plan({ task }))).toMatchObject([{ severity: "hard-deny" }]);
});

test.each(["", " ", "\n\t \u00a0"])("S3-17 the capsule %j is empty: one hard denial", (capsule) => {
  expect(checkStructure(plan({ capsule }))).toMatchObject([{ severity: "hard-deny" }]);
});

test("S3-18 S3-19 errors add up in the order permission, task, capsule, all at pre-delegation; a clean plan has none", () => {
  for (const role of ROLES) expect(checkStructure(plan({ role }))).toEqual([]);
  const errors = checkStructure(
    plan({ writePermission: "plan-approved-files", task: " ", capsule: "" }),
  );
  expect(errors.map(({ severity, policy, point }) => ({ severity, policy, point }))).toEqual([
    { severity: "soft-deny", policy: "delegation.permission", point: "pre-delegation" },
    { severity: "hard-deny", policy: "delegation.task", point: "pre-delegation" },
    { severity: "hard-deny", policy: "delegation.capsule", point: "pre-delegation" },
  ]);
  expect(checkStructure(plan({ task: "", capsule: "" }))).toHaveLength(2);
});

test("S3-20 the check does not change the plan", () => {
  const given = plan({ task: " ", writePermission: "evidence-through-tool" });
  const before = structuredClone(given);
  checkStructure(Object.freeze(given));
  checkBinding(given);
  checkAuthorisation(given, undefined);
  expect(given).toEqual(before);
});

test("a role that does not exist is a hard denial, not the absence of one", () => {
  const errors = checkStructure(plan({ role: "admin" as Role, writePermission: "none" }));
  expect(errors).toMatchObject([{ severity: "hard-deny", policy: "delegation.role" }]);
});

test("S3-13 S3-14 a plan without a promise or without a trace is refused", () => {
  expect(checkBinding(plan())).toEqual([]);
  expect(checkBinding(plan({ promiseId: "" }))).toMatchObject([
    { severity: "hard-deny", policy: "delegation.promise" },
  ]);
  expect(checkBinding(plan({ traceId: " " }))).toMatchObject([
    { severity: "hard-deny", policy: "delegation.trace" },
  ]);
  expect(checkBinding(plan({ traceId: "", promiseId: "" }))).toHaveLength(2);
});

test("S3-21 code without a run is a hard denial", () => {
  const errors = checkAuthorisation(plan({ role: "code" }), undefined);
  expect(errors).toMatchObject([{ severity: "hard-deny", point: "pre-delegation" }]);
});

test.each(PHASES.filter((phase) => phase !== "execute"))(
  "S3-22 code in the phase %s is a hard denial that names the phase",
  (phase) => {
    const errors = checkAuthorisation(plan({ role: "code" }), { id: "run-1", phase });
    expect(errors).toMatchObject([{ severity: "hard-deny" }]);
    expect(errors[0]?.message).toContain(phase);
  },
);

test("S3-23 code in the phase execute is fine", () => {
  expect(checkAuthorisation(plan({ role: "code" }), { id: "run-1", phase: "execute" })).toEqual([]);
});

test.each(ROLES.filter((role) => role !== "code"))(
  "S3-24 the role %s needs neither a run nor a phase",
  (role) => {
    expect(checkAuthorisation(plan({ role }), undefined)).toEqual([]);
    for (const phase of PHASES) {
      expect(checkAuthorisation(plan({ role }), { id: "run-1", phase })).toEqual([]);
    }
  },
);
