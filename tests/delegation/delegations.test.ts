import { expect, test } from "vitest";
import type { Delegated, DelegationRequest, Parent } from "../../src/delegation/plan.ts";
import type { DelegationId } from "../../src/model/delegation.ts";
import type { GatePolicy } from "../../src/policy/decide.ts";
import { seededRandom } from "../../src/util/random.ts";
import { ADA, asks, LEAD, openWorld, PROMISE, parentOf } from "./world.ts";

type World = ReturnType<typeof openWorld>;

async function handed(world: World, request: DelegationRequest, parent: Parent = world.lead()) {
  const answer = await world.delegations.delegate(parent, request);
  if (answer.answer !== "delegated") throw new Error(`expected yes, got ${JSON.stringify(answer)}`);
  return answer;
}

async function denied(world: World, request: DelegationRequest, parent: Parent = world.lead()) {
  const answer: Delegated = await world.delegations.delegate(parent, request);
  if (answer.answer !== "denied") throw new Error(`expected no, got ${answer.answer}`);
  return [
    ...answer.verdict.errors.filter(({ severity }) => severity === "hard-deny"),
    ...(answer.verdict.gate?.findings ?? []),
  ].map(({ policy }) => policy);
}

const says = (
  severity: "soft-deny" | "hard-deny",
  point: GatePolicy["points"][number],
): GatePolicy => ({
  name: "house",
  points: [point],
  check: () => [{ severity, policy: "house", message: "not like this" }],
});

test("nothing is delegated without a plan that passed the gate [S3-07]", async () => {
  const world = openWorld({ policies: [says("hard-deny", "pre-delegation")] });
  expect(await denied(world, asks())).toEqual(["house"]);
  expect(await denied(world, asks({ task: " " }))).toEqual(["delegation.task", "house"]);
  expect(await world.delegations.list({})).toEqual([]);
  expect(await world.types()).toEqual([
    "gate.evaluated",
    "delegation.refused",
    "gate.evaluated",
    "delegation.refused",
  ]);
});

test("if the gate throws, nothing is delegated [S3-07 S3-33]", async () => {
  const world = openWorld();
  const broken = {
    ...world.store,
    grants: { ...world.store.grants, listFor: () => Promise.reject(new Error("down")) },
  };
  const { createDelegations } = await import("../../src/delegation/delegations.ts");
  const delegations = createDelegations({ ...world.parts, store: broken });
  await expect(delegations.delegate(world.lead(), asks())).rejects.toThrow("down");
  expect(await world.delegations.list({})).toEqual([]);
});

test("the outcome names plan, gate trace and promise, in the answer and in the audit log [S3-13 S3-41]", async () => {
  const world = openWorld();
  const { delegation, token } = await handed(world, asks());
  const outcome = await world.delegations.report(delegation.id, "It was the cache.", token);
  expect(outcome).toEqual({
    delegationId: delegation.id,
    planId: delegation.scope.planId,
    traceId: delegation.traceId,
    promiseId: "p-1",
    state: "reported",
    promiseMet: true,
    missing: [],
    output: "It was the cache.",
    reason: "",
  });
  const trail = await world.store.audit.read({ after: 0, limit: 100 });
  const gate = trail.find(({ type }) => type === "gate.evaluated");
  expect(gate?.subject).toBe(delegation.traceId);
  const told = JSON.parse(String(trail.at(-1)?.data));
  expect(trail.at(-1)?.type).toBe("delegation.reported");
  expect(told).toMatchObject({ plan: outcome.planId, trace: outcome.traceId, promise: "p-1" });
});

test("an empty promise id is refused [S3-14]", async () => {
  const world = openWorld();
  expect(await denied(world, asks({ promise: "" }))).toEqual(["delegation.promise"]);
  const blank = { id: " ", statement: "x", evidence: [] };
  expect(await denied(world, asks({ promise: blank }))).toEqual(["delegation.promise"]);
  expect(await denied(world, asks({ promise: "p-unknown" }))).toEqual(["delegation.promise"]);
});

test("plans with the same id are two delegations [S3-10]", async () => {
  const world = openWorld({ random: { bytes: (n) => new Uint8Array(n) } });
  const one = await handed(world, asks());
  const two = await handed(world, asks());
  expect(one.delegation.scope.planId).toBe(two.delegation.scope.planId);
  expect(one.delegation.id).not.toBe(two.delegation.id);
});

test("code is delegated only in the execute phase of a run, for files of its plan [S3-21 S3-22 S3-23]", async () => {
  const world = openWorld();
  const code = asks({ role: "code" });
  expect(await denied(world, code)).toContain("delegation.authorisation");
  const verify = await world.runIn("verify");
  expect(await denied(world, code, world.lead(verify.id))).toContain("delegation.authorisation");
  const run = await world.runIn("execute");
  const { delegation } = await handed(world, code, world.lead(run.id));
  expect(delegation).toMatchObject({ runId: run.id, scope: { planFiles: ["/work/a.ts"] } });
  const wider = asks({ role: "code", planFiles: ["a.ts", "b.ts"] });
  expect(await denied(world, wider, world.lead(run.id))).toEqual(["delegation.scope"]);
});

test("a run that has ended delegates nothing, and only its lead delegates in it [S3-21 T33]", async () => {
  const world = openWorld();
  const run = await world.runIn("execute");
  const stranger = { ...world.lead(run.id), agents: ["agent:mallory"] };
  expect(await denied(world, asks(), stranger)).toEqual(["delegation.run"]);
  await world.runs.tell(run.id, { kind: "stopped", reason: "enough" }, ADA);
  for (const role of ["code", "research"] as const) {
    expect(await denied(world, asks({ role }), world.lead(run.id))).toContain("delegation.run");
  }
});

test("an unusual permission is reported and delegated [S3-36]", async () => {
  const world = openWorld();
  const { verdict, delegation } = await handed(
    world,
    asks({ role: "doc", writePermission: "none" }),
  );
  expect(verdict.errors).toMatchObject([{ severity: "soft-deny" }]);
  expect(delegation.scope.writePermission).toBe("none");
});

test("the sub-agent gets the capsule and nothing of its parent's history [S3-40]", async () => {
  const world = openWorld();
  const { delegation, token, capsule } = await handed(world, asks());
  const attached = await world.delegations.attach(delegation.id, token);
  attached.watch.stop();
  expect(attached.capsule).toEqual(capsule);
  expect(Object.keys(capsule).toSorted()).toEqual([
    "context",
    "delegationId",
    "planId",
    "promise",
    "role",
    "scope",
    "task",
    "workingDirectory",
  ]);
  expect(capsule.context).toBe("the log says no");
  expect(JSON.stringify(capsule)).not.toContain("session-1");
});

test("a dry run shows the capsule and starts and writes nothing [I-63]", async () => {
  const world = openWorld();
  const answer = await world.delegations.delegate(world.lead(), asks(), { dryRun: true });
  expect(answer).toMatchObject({
    answer: "dry_run",
    capsule: { delegationId: "", task: "find the cause" },
  });
  if (answer.answer === "dry_run") expect(answer.text).toContain("the log says no");
  expect(await world.types()).toEqual([]);
  // What is wrong with it is shown as well.
  const bad = await world.delegations.delegate(world.lead(), asks({ role: "code" }), {
    dryRun: true,
  });
  expect(bad).toMatchObject({ answer: "dry_run", verdict: { allowed: false } });
  expect(await world.types()).toEqual([]);
});

test("a sub-agent delegates further only if its scope says so, and with less [I-63]", async () => {
  const world = openWorld();
  const { delegation: child } = await handed(world, asks());
  expect(await denied(world, asks({ agent: "agent:g" }), parentOf(child))).toEqual([
    "delegation.scope",
  ]);
  const { delegation: trusted } = await handed(world, asks({ agent: "agent:t", depth: 1 }));
  const { delegation: grandchild } = await handed(
    world,
    asks({ agent: "agent:g" }),
    parentOf(trusted),
  );
  expect(grandchild.chain).toEqual([trusted.id, grandchild.id]);
  expect(grandchild.agents).toEqual(["agent:g", "agent:t", LEAD]);
  expect(grandchild.rootSession).toBe("session-1");
});

test("cycles are refused: no agent delegates to itself or to a delegator [T33]", async () => {
  const world = openWorld();
  expect(await denied(world, asks({ agent: LEAD }))).toEqual(["delegation.cycle"]);
  const { delegation } = await handed(world, asks({ depth: 3 }));
  // The record names the delegators, not the caller.
  const liar = { ...parentOf(delegation), agents: ["agent:innocent"] };
  for (const agent of ["agent:child", LEAD, "AGENT:Child", "agent:\u200blead"]) {
    expect(await denied(world, asks({ agent }), liar), agent).toEqual(["delegation.cycle"]);
  }
  expect(await denied(world, asks({ agent: " " }))).toEqual(["delegation.agent"]);
});

test("a session with the id of a missing delegation delegates nothing [T33]", async () => {
  const world = openWorld();
  const nobody = { sessionId: "dlg-nobody", agents: [LEAD], workingDirectory: "/work" };
  await expect(world.delegations.delegate(nobody, asks())).rejects.toMatchObject({
    code: "not_found",
  });
});

test("only the token opens a delegation, and it is not stored", async () => {
  const world = openWorld();
  const { delegation, token } = await handed(world, asks());
  for (const wrong of ["", "x", `${token}x`, delegation.tokenHash, "\ud800"]) {
    const id = delegation.id;
    await expect(world.delegations.attach(id, wrong)).rejects.toMatchObject({
      code: "not_allowed",
    });
    await expect(world.delegations.report(id, "done", wrong)).rejects.toMatchObject({
      code: "not_allowed",
    });
  }
  const { delegation: other, token: theirs } = await handed(world, asks({ agent: "agent:other" }));
  await expect(world.delegations.attach(other.id, token)).rejects.toMatchObject({
    code: "not_allowed",
  });
  expect(theirs).not.toBe(token);
  expect(JSON.stringify(await world.delegations.list({}))).not.toContain(token);
  const trail = await world.store.audit.read({ after: 0, limit: 100 });
  expect(JSON.stringify(trail)).not.toContain(token);
});

test("a report is cut at 30,000 characters, with a mark [I-63]", async () => {
  const world = openWorld();
  const { delegation, token } = await handed(world, asks());
  const outcome = await world.delegations.report(delegation.id, "x".repeat(30_001), token);
  expect(outcome.output).toHaveLength(30_000);
  expect(outcome.output).toMatch(/\[cut: /);
  const whole = await handed(world, asks({ agent: "agent:b" }));
  const fits = await world.delegations.report(whole.delegation.id, "y".repeat(30_000), whole.token);
  expect(fits.output).toBe("y".repeat(30_000));
});

test("a report is checked against its promise [I-61]", async () => {
  const world = openWorld();
  const run = await world.runIn("verify");
  const parent = world.lead(run.id);
  const first = await handed(world, asks({ role: "verify", promise: PROMISE.id }), parent);
  const early = await world.delegations.report(
    first.delegation.id,
    "Everything is fine.",
    first.token,
  );
  expect(early).toMatchObject({ state: "reported", promiseMet: false, missing: ["tests"] });
  await world.runs.tell(
    run.id,
    {
      kind: "evidence_recorded",
      evidence: {
        promiseId: PROMISE.id,
        need: "tests",
        command: "npm test",
        exitCode: 0,
        keyOutput: "9 passed",
        conclusion: "All pass.",
        observed: true,
        green: true,
        key: "k",
        sessionId: "s",
        at: "2026-11-15T06:00:00.000Z",
      },
    },
    { actor: "agent:verify" },
  );
  const second = await handed(world, asks({ role: "verify", promise: PROMISE.id }), parent);
  const late = await world.delegations.report(second.delegation.id, "Tested.", second.token);
  expect(late).toMatchObject({ state: "reported", promiseMet: true, missing: [] });
  const third = await handed(world, asks(), world.lead());
  const silent = await world.delegations.report(third.delegation.id, " \n", third.token);
  expect(silent).toMatchObject({ promiseMet: false, missing: ["a report"] });
});

test("a promise of a delegation is added to its run once, so that evidence can be recorded [I-61]", async () => {
  const world = openWorld();
  const run = await world.runIn("discuss");
  const own = { id: "p-own", statement: "known", evidence: [{ name: "links" }] };
  await handed(world, asks({ promise: own }), world.lead(run.id));
  await handed(world, asks({ promise: own }), world.lead(run.id));
  expect((await world.runs.get(run.id)).promises).toEqual([PROMISE, own]);
  const other = { ...own, statement: "something else" };
  expect(await denied(world, asks({ promise: other }), world.lead(run.id))).toEqual([
    "delegation.promise",
  ]);
});

test("a finding at post-delegation fails the delegation [I-55 I-56]", async () => {
  const world = openWorld({ policies: [says("hard-deny", "post-delegation")] });
  const { delegation, token } = await handed(world, asks());
  const outcome = await world.delegations.report(delegation.id, "done", token);
  expect(outcome).toMatchObject({ state: "failed", promiseMet: false, output: "" });
  expect(outcome.reason).toContain("not like this");
});

test("a person's grant lifts a soft denial of the gate until it is revoked [I-59]", async () => {
  const world = openWorld({ policies: [says("soft-deny", "pre-delegation")] });
  expect(await denied(world, asks())).toEqual(["house"]);
  const { id } = await world.store.grants.give({
    sessionId: "session-1",
    finding: { policy: "house", message: "not like this" },
    grantor: "user",
    scope: { kind: "finding" },
    by: "person:ada",
    reason: "fine this once",
  });
  const { verdict } = await handed(world, asks());
  expect(verdict.gate?.overridden).toMatchObject([{ grant: id }]);
  await world.store.grants.revoke(id, "no more", ADA);
  expect(await denied(world, asks({ agent: "agent:b" }))).toEqual(["house"]);
  await world.store.grants.give({
    sessionId: "session-1",
    finding: { policy: "house", message: "" },
    grantor: "user",
    scope: { kind: "point", point: "pre-delegation" },
    by: "person:ada",
    reason: "for half an hour",
  });
  await handed(world, asks({ agent: "agent:c" }));
  world.clock.advance(30 * 60_000);
  expect(await denied(world, asks({ agent: "agent:d" }))).toEqual(["house"]);
});

test("a failing ledger is reported and does not change the decision", async () => {
  const world = openWorld();
  const { createDelegations } = await import("../../src/delegation/delegations.ts");
  const broken = {
    ...world.store,
    gateLedger: { record: () => Promise.reject(new Error("full")) },
  };
  const delegations = createDelegations({ ...world.parts, store: broken });
  expect((await delegations.delegate(world.lead(), asks())).answer).toBe("delegated");
  expect(world.problems).toHaveLength(1);
});

test("sweeping ends an expired delegation once", async () => {
  const world = openWorld();
  const { delegation } = await handed(world, asks({ ttlMs: 1_000 }));
  const { delegation: longer } = await handed(world, asks({ agent: "agent:l", ttlMs: 5_000 }));
  expect(await world.delegations.sweep()).toEqual([]);
  world.clock.advance(1_001);
  expect(await world.delegations.sweep()).toEqual([delegation.id]);
  expect(await world.delegations.sweep()).toEqual([]);
  expect(await world.delegations.get(delegation.id)).toMatchObject({
    state: "failed",
    reason: "It has expired.",
  });
  expect((await world.delegations.get(longer.id)).state).toBe("active");
});

test("the same seed gives the same plan ids", async () => {
  const ids: DelegationId[] = [];
  for (let n = 0; n < 2; n += 1) {
    const world = openWorld({ random: seededRandom(7) });
    ids.push((await handed(world, asks())).delegation.id);
  }
  expect(ids[0]).toBe(ids[1]);
});
