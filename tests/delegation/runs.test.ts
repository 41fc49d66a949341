import { expect, test } from "vitest";
import { createActionPlan } from "../../src/delegation/plan.ts";
import {
  type LoopParts,
  type Observation,
  readRunEvents,
  runLoop,
} from "../../src/delegation/runs.ts";
import type { Evidence, Run, RunEvent } from "../../src/model/delegation.ts";
import type { GatePolicy } from "../../src/policy/decide.ts";
import { ADA, LEAD, openWorld, PROMISE } from "./world.ts";

type World = ReturnType<typeof openWorld>;
const BY_LEAD = { actor: LEAD };

const GREEN: Evidence = {
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
};
const proved: RunEvent = { kind: "evidence_recorded", evidence: GREEN };

function parts(world: World, over: Partial<LoopParts<string>> = {}) {
  const order: string[] = [];
  const seen: Observation<string>[] = [];
  const all: LoopParts<string> = {
    async reason() {
      order.push("reason");
      return createActionPlan({ action: "step", doneWhen: "done" }, world.parts);
    },
    async gate() {
      order.push("gate");
      return [];
    },
    async act() {
      order.push("act");
      return "fine";
    },
    async observe(observation) {
      order.push("observe");
      seen.push(observation);
    },
    ...over,
  };
  return { all, order, seen };
}

async function stagesOf(world: World, run: Run): Promise<string[]> {
  const stages: string[] = [];
  for await (const { event } of readRunEvents(world.store.audit, run.id)) {
    if (event.kind === "staged") stages.push(`${event.round} ${event.stage}`);
  }
  return stages;
}

test("a round is reason, gate, act, observe, update, evaluate, and the budget ends an endless loop [I-60]", async () => {
  const world = openWorld();
  const run = await world.runIn("discuss", { budget: 2 });
  const { all, order } = parts(world);
  const ended = await runLoop(run.id, world.runs, all);
  expect(ended).toMatchObject({
    status: "stopped",
    rounds: 2,
    reason: "Its budget of rounds is used up.",
  });
  expect(order).toEqual(["reason", "gate", "act", "observe", "reason", "gate", "act", "observe"]);
  const turn = (n: number) =>
    ["reason", "gate", "act", "observe", "update", "evaluate"].map((stage) => `${n} ${stage}`);
  expect(await stagesOf(world, run)).toEqual([...turn(1), ...turn(2)]);
});

test("a denied action is not executed, one that throws has failed, and both are observed [I-60]", async () => {
  const world = openWorld();
  const run = await world.runIn("discuss", { budget: 3 });
  let turn = 0;
  const { all, order, seen } = parts(world, {
    async gate() {
      turn += 1;
      if (turn === 1) return [{ severity: "soft-deny", policy: "p", message: "no" }];
      return [{ severity: "warning", policy: "p", message: "careful" }];
    },
    async act() {
      order.push("act");
      if (turn === 2) throw new Error("broken");
      return "fine";
    },
  });
  await runLoop(run.id, world.runs, all);
  expect(order.filter((name) => name === "act")).toHaveLength(2);
  expect(seen).toMatchObject([
    { refused: [{ message: "no" }] },
    { error: "broken" },
    { outcome: "fine" },
  ]);
  expect((await stagesOf(world, run)).slice(0, 5)).toEqual([
    "1 reason",
    "1 gate",
    "1 observe",
    "1 update",
    "1 evaluate",
  ]);
});

test("a stop hook ends the run with its reason [I-60]", async () => {
  const world = openWorld();
  const run = await world.runIn("discuss", { budget: 100 });
  const { all } = parts(world, {
    stop: ({ rounds }) => (rounds === 3 ? "It goes in circles." : undefined),
  });
  expect(await runLoop(run.id, world.runs, all)).toMatchObject({
    status: "stopped",
    rounds: 3,
    reason: "It goes in circles.",
  });
  // It stays that way.
  expect((await runLoop(run.id, world.runs, all)).rounds).toBe(3);
});

test("a finished loop is done only when the promise is met and the run has shipped [I-61]", async () => {
  const world = openWorld();
  const run = await world.runIn("verify", { budget: 6 });
  let rounds = 0;
  const { all } = parts(world, {
    async reason() {
      rounds += 1;
      if (rounds === 2) await world.runs.tell(run.id, proved, BY_LEAD);
      if (rounds === 3) await world.runs.enter(run.id, "ship", BY_LEAD);
      return "finished";
    },
  });
  expect(await runLoop(run.id, world.runs, all)).toMatchObject({
    status: "done",
    rounds: 3,
    phase: "ship",
  });
  const other = await world.runIn("verify", { budget: 4 });
  const never = parts(world, { reason: async () => "finished" });
  expect(await runLoop(other.id, world.runs, never.all)).toMatchObject({
    status: "stopped",
    rounds: 4,
  });
});

test("a run rebuilt from the audit log alone is the same [I-60]", async () => {
  const world = openWorld();
  const run = await world.runIn("verify");
  await world.runs.tell(
    run.id,
    { kind: "artefact_named", phase: "verify", path: "/work/v.md" },
    BY_LEAD,
  );
  await world.runs.tell(run.id, proved, BY_LEAD);
  const { all } = parts(world, { stop: () => "enough" });
  await runLoop(run.id, world.runs, all);
  const other = await world.runIn("spec");
  expect(await world.runs.replay(run.id)).toEqual(await world.runs.get(run.id));
  expect(await world.runs.replay(other.id)).toEqual(await world.runs.get(other.id));
  expect(await world.runs.replay("run-nobody")).toBeUndefined();
});

test("the gate judges each phase change, and a grant for the phase lifts soft denials [I-62]", async () => {
  const slow: GatePolicy = {
    name: "slow",
    points: ["pre-phase-transition"],
    check: ({ phase }) =>
      phase === "plan" ? [{ severity: "soft-deny", policy: "slow", message: "wait" }] : [],
  };
  const world = openWorld({ policies: [slow] });
  const run = await world.runIn("spec");
  expect(await world.runs.enter(run.id, "plan", BY_LEAD)).toMatchObject({
    entered: false,
    findings: [{ policy: "slow" }],
  });
  expect((await world.runs.get(run.id)).phase).toBe("spec");
  const types = await world.types();
  expect(types.filter((type) => type === "gate.evaluated")).toHaveLength(2);
  const grant = (phase: string) =>
    world.store.grants.give({
      sessionId: run.id,
      finding: { policy: "slow", message: "" },
      grantor: "user",
      scope: { kind: "phase", phase },
      by: "person:ada",
      reason: "go on",
    });
  await grant("ship");
  expect((await world.runs.enter(run.id, "plan", BY_LEAD)).entered).toBe(false);
  await grant("plan");
  expect((await world.runs.enter(run.id, "plan", BY_LEAD)).entered).toBe(true);
});

test("the lead cannot approve the plan of its run, and the plan's files are absolute [I-62]", async () => {
  const world = openWorld();
  const run = await world.runIn("plan");
  await expect(world.runs.approvePlan(run.id, ["/work/a.ts"], BY_LEAD)).rejects.toMatchObject({
    code: "dependency_denied",
  });
  await expect(world.runs.approvePlan(run.id, ["a.ts"], ADA)).rejects.toMatchObject({
    code: "invalid_input",
  });
  await world.runs.approvePlan(run.id, ["/work/a.ts", "sql:shop/orders"], ADA);
  expect((await world.runs.get(run.id)).planFiles).toEqual(["/work/a.ts", "sql:shop/orders"]);
});

test("concurrent events are all applied, one after the other [I-60]", async () => {
  const world = openWorld();
  const run = await world.runIn("discuss");
  const promises = Array.from({ length: 12 }, (_, n) => ({
    id: `p-${n}`,
    statement: "s",
    evidence: [],
  }));
  await Promise.all(
    promises.map((promise) => world.runs.tell(run.id, { kind: "promised", promise }, BY_LEAD)),
  );
  const after = await world.runs.get(run.id);
  expect(after.promises).toHaveLength(13);
  expect(after).toEqual(await world.runs.replay(run.id));
});
