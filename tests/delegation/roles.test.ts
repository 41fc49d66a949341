// Roles, write permissions and the capsule, as a delegating agent and its sub-agent meet them.

import { expect, test } from "vitest";
import { AGENT_ROLES, isReadOnlyRole } from "../../src/delegation/index.ts";
import { createPlan, validatePlan } from "../../src/delegation/plan.ts";
import { manualClock } from "../../src/util/clock.ts";
import { systemRandom } from "../../src/util/random.ts";
import { forEachStore } from "../support/for-each-store.ts";
import { child, codes, openBox, put, startRun } from "./port-delegation.ts";
import { ADA, asks, LEAD, START } from "./world.ts";

const DEFAULTS = {
  research: "none",
  doc: "docs-and-current-phase-artifact",
  code: "plan-approved-files-only",
  review: "none",
  verify: "evidence-through-kd_verify_result",
};

test("a plan without a permission has that of its role [S3-03]", () => {
  const sources = { clock: manualClock(START), random: systemRandom };
  const draft = { task: "t", capsule: "c", promiseId: "p", traceId: "g" };
  const usual = AGENT_ROLES.map((role) => [
    role,
    createPlan({ role, ...draft }, sources).writePermission,
  ]);
  expect(Object.fromEntries(usual)).toEqual(DEFAULTS);
});

forEachStore("the table of roles", (open) => {
  test("every role is stored with its default permission, and another process reads the same [S3-06]", async () => {
    const { engine, clock, again } = await open();
    const { gate } = openBox({}, { engine, clock });
    const { session, run } = await startRun(gate, ["a"]);
    const given = new Map<string, string>();
    for (const role of AGENT_ROLES) {
      const { delegation } = await child(gate, session, asks({ role, agent: `agent:${role}` }));
      given.set(role, delegation.scope.writePermission);
      await gate.delegations.fail(delegation.id, "It is not needed any more.", ADA);
    }
    expect(Object.fromEntries(given)).toEqual(DEFAULTS);
    const there = (await again?.())?.engine ?? engine;
    const other = openBox({}, { engine: there, clock }).gate;
    const stored = await other.delegations.list({ rootSession: run.id });
    const table = stored.map(({ scope }) => [scope.role, scope.writePermission]);
    expect(Object.fromEntries(table)).toEqual(DEFAULTS);
  });
});

test("a delegation keeps one of the four permissions; any other word starts nothing [S3-02]", async () => {
  const { gate } = openBox();
  const { session } = await startRun(gate, ["a"]);
  const permissions = ["none", "docs-and-current-phase-artifact", "plan-approved-files-only"];
  const kept: string[] = [];
  for (const writePermission of [...permissions, "evidence-through-kd_verify_result", "all"]) {
    const request = codes({ writePermission: writePermission as never });
    const given = await session.delegate(request).catch(() => undefined);
    if (given?.answer === "delegated") kept.push(given.delegation.scope.writePermission);
  }
  expect(
    new Set(kept).isSubsetOf(new Set([...permissions, "evidence-through-kd_verify_result"])),
  ).toBe(true);
  expect(kept).toContain("plan-approved-files-only");
  expect(kept).not.toContain("all");
});

test("research, review and verify are read-only roles and change no file; verify neither [S3-04 S3-05]", async () => {
  expect(AGENT_ROLES.filter(isReadOnlyRole)).toEqual(["research", "review", "verify"]);
  const { gate, effects } = openBox();
  const { session } = await startRun(gate, ["a"]);
  for (const role of ["research", "review", "verify"] as const) {
    const sub = await child(
      gate,
      session,
      asks({ role, agent: `agent:${role}`, tools: ["box.*"] }),
    );
    expect((await sub.session.call(put("a"))).answer, role).toBe("denied");
  }
  expect(effects).toEqual([]);
  const coder = await child(gate, session, codes({ agent: "agent:coder" }));
  expect((await coder.session.call(put("a"))).answer, "as code it may").toBe("done");
});

test("nothing is delegated that a policy of the gate denies at pre-delegation [S3-07]", async () => {
  const asked: unknown[] = [];
  const no = {
    name: "not-today",
    points: ["pre-delegation"] as const,
    check(context: { readonly payload?: unknown }) {
      asked.push(context.payload);
      return [{ severity: "hard-deny", policy: "not-today", message: "Not today." } as const];
    },
  };
  const { gate } = openBox({ gatePolicies: [no] });
  const session = gate.sessions.open({ id: "lead", agent: LEAD });
  const given = await session.delegate(asks());
  expect(given).toMatchObject({ answer: "denied", text: expect.stringContaining("Not today.") });
  expect(asked).toMatchObject([{ planId: expect.stringMatching(/^plan-/), task: asks().task }]);
  expect(await gate.delegations.list({})).toEqual([]);
});

test("the sub-agent gets the capsule, and nothing of the conversation it comes from [S3-40]", async () => {
  const { gate } = openBox();
  const session = gate.sessions.open({ id: "lead", agent: LEAD });
  await session.call({ callId: "c-1", tool: "box.look", input: {}, messageId: "a secret thought" });
  const given = await session.delegate(asks());
  if (given.answer !== "delegated") return expect.unreachable(given.text);
  const { capsule, watch } = await gate.delegations.attach(given.delegation.id, given.token);
  watch.stop();
  expect(capsule).toEqual(given.capsule);
  expect(capsule).toMatchObject({ context: asks().capsule, task: asks().task });
  const said = JSON.stringify(capsule);
  expect(said).not.toContain("a secret thought");
  expect(said).not.toContain('lead"');
});

test("no agent approves a plan, whoever may decide; a yes and evidence cannot be told to a run [I-62]", async () => {
  const { gate } = openBox();
  const run = await gate.runs.start({
    feature: "boxes",
    lead: LEAD,
    promise: { id: "p", statement: "it works", evidence: [{ name: "tests" }] },
    documents: "",
    evidenceFolder: "",
    budget: 5,
  });
  for (const phase of ["spec", "plan"] as const)
    await gate.runs.enter(run.id, phase, { actor: LEAD });
  await gate.sessions.open({ id: "x", agent: "helper" }).call({ tool: "box.look", input: {} });
  await gate.sessions.open({ id: "x", agent: "helper" }).call(put("a"));
  for (const actor of ["agent:other", "Agent:Other", "helper", LEAD]) {
    await expect(gate.runs.approvePlan(run.id, ["/a"], { actor }), actor).rejects.toMatchObject({
      code: "dependency_denied",
    });
  }
  const events = [
    { kind: "plan_approved", files: ["/a"] },
    { kind: "evidence_recorded", evidence: { promiseId: "p", need: "tests", green: true } },
  ];
  for (const event of events) {
    const told = gate.runs.tell(run.id, event as never, { actor: "person:ada" });
    await expect(told, event.kind).rejects.toMatchObject({ code: "not_allowed" });
  }
  expect(await gate.runs.get(run.id)).toMatchObject({ planFiles: [], evidence: [] });
  await gate.runs.approvePlan(run.id, ["/a"], { actor: "person:ada" });
  expect((await gate.runs.get(run.id)).planFiles).toEqual(["/a"]);
});

test.each([[undefined], [null], [0], [1], ["true"], [{}], [Promise.resolve(true)]])(
  "a plan is valid only when the gate says a plain true, not %j [S3-07]",
  async (allowed) => {
    const sources = { clock: manualClock(START), random: systemRandom };
    const draft = { task: "t", capsule: "c", promiseId: "p", traceId: "g" };
    const plan = createPlan({ role: "research", ...draft }, sources);
    const run = { traceId: "g", point: "pre-delegation", findings: [], overridden: [], allowed };
    const gate = { run: async () => run as never };
    expect((await validatePlan(plan, { gate })).allowed).toBe(false);
    const yes = { run: async () => ({ ...run, allowed: true }) as never };
    expect((await validatePlan(plan, { gate: yes })).allowed).toBe(true);
    const lifts = { evaluate: () => run as never };
    expect((await validatePlan(plan, { gate: yes, authorisation: lifts })).allowed).toBe(false);
    expect((await validatePlan(plan)).allowed, "without a gate").toBe(true);
  },
);
