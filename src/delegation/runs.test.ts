import { expect, test } from "vitest";
import {
  LOOP_STAGES,
  mayFollow,
  PHASES,
  type Phase,
  type Run,
  type RunEvent,
} from "../model/delegation.ts";
import { deepFreeze } from "../util/json.ts";
import { reduceRun, replayRun } from "./runs.ts";

const promise = { id: "p", statement: "it works", evidence: [{ name: "tests" }] };
const START: RunEvent = {
  kind: "started",
  feature: "refunds",
  lead: "agent:lead",
  documents: "/w/docs",
  evidenceFolder: "",
  promise,
  budget: 3,
};
const FILES: RunEvent = { kind: "plan_approved", files: ["/w/a.ts"] };
const to = (from: Phase, next: Phase): RunEvent => ({ kind: "phase_changed", from, to: next });
const evidence = (green: boolean): RunEvent => ({
  kind: "evidence_recorded",
  evidence: {
    promiseId: "p",
    need: "tests",
    command: "npm test",
    exitCode: green ? 0 : 1,
    keyOutput: "x",
    conclusion: "x",
    observed: true,
    green,
    key: "k",
    sessionId: "s",
    at: "2026-11-15T06:00:00.000Z",
  },
});
const TO_VERIFY = [
  START,
  to("discuss", "spec"),
  to("spec", "plan"),
  FILES,
  to("plan", "execute"),
  to("execute", "verify"),
];
const after = (...events: RunEvent[]): Run => replayRun("run-1", events) as Run;

test("phases run discuss, spec, plan, execute, verify, ship; all 36 pairs [I-62]", () => {
  expect(PHASES).toEqual(["discuss", "spec", "plan", "execute", "verify", "ship"]);
  const legal: string[] = [];
  for (const from of PHASES) {
    for (const next of PHASES) {
      const run = {
        ...after(START),
        phase: from,
        planFiles: ["/w/a.ts"],
        promises: [{ ...promise, evidence: [] }],
      };
      const move = () => reduceRun(run, "run-1", to(from, next));
      if (!mayFollow(from, next)) expect(move, `${from} to ${next}`).toThrow(/illegal_transition/);
      else legal.push(`${from} ${move().phase}`);
    }
  }
  expect(legal).toEqual(
    [
      "discuss spec",
      "spec plan",
      "plan execute",
      "execute plan",
      "execute verify",
      "verify execute",
      "verify ship",
    ].toSorted((a, b) => legal.indexOf(a) - legal.indexOf(b)),
  );
});

test("execute needs an approved plan, and a plan is approved only in the phase plan [I-62]", () => {
  const planning = [START, to("discuss", "spec"), to("spec", "plan")];
  expect(() => after(...planning, to("plan", "execute"))).toThrow(/approve the plan/);
  expect(after(...planning, FILES, to("plan", "execute")).phase).toBe("execute");
  expect(() => after(START, FILES)).toThrow(/phase plan/);
});

test("a run ships only if its promise is met; a repair needs a new verification [I-61 I-62]", () => {
  expect(() => after(...TO_VERIFY, to("verify", "ship"))).toThrow(/no green evidence for tests/);
  expect(() => after(...TO_VERIFY, evidence(false), to("verify", "ship"))).toThrow(/tests/);
  const repaired = [...TO_VERIFY, evidence(true), to("verify", "execute"), to("execute", "verify")];
  expect(after(...repaired).evidence).toEqual([]);
  expect(() => after(...repaired, to("verify", "ship"))).toThrow(/no green evidence/);
  const shipped = after(...repaired, evidence(true), to("verify", "ship"), { kind: "done" });
  expect(shipped).toMatchObject({ phase: "ship", status: "done" });
});

test("a run is done only in the phase ship [I-61]", () => {
  expect(() => after(...TO_VERIFY, evidence(true), { kind: "done" })).toThrow(/ship/);
});

test("the stages of the loop have an order, and its rounds have a budget [I-60]", () => {
  const round = (n: number, stages: readonly (typeof LOOP_STAGES)[number][] = LOOP_STAGES) =>
    stages.map((stage): RunEvent => ({ kind: "staged", stage, round: n }));
  expect(after(START, ...round(1), ...round(2)).rounds).toBe(2);
  expect(
    after(START, ...round(1, ["reason", "gate", "observe", "update", "evaluate"])).rounds,
  ).toBe(1);
  for (const wrong of [["act"], ["reason", "act"], ["reason", "gate", "act", "update"]] as const) {
    expect(() => after(START, ...round(1, wrong)), wrong.join()).toThrow(/order/);
  }
  expect(() => after(START, ...round(2))).toThrow(/order/);
  expect(() => after(START, ...round(1), ...round(2), ...round(3), ...round(4))).toThrow(/budget/);
});

test("the reducer is pure: same input, same output, input unchanged [I-60]", () => {
  const before = deepFreeze(after(...TO_VERIFY));
  const event = deepFreeze(evidence(true));
  const next = reduceRun(before, "run-1", event);
  expect(reduceRun(before, "run-1", event)).toEqual(next);
  expect(next.version).toBe(before.version + 1);
  expect(before.evidence).toEqual([]);
});

test("a run accepts no event before its start, no second start and no event after its end [I-60]", () => {
  expect(() => reduceRun(undefined, "run-1", FILES)).toThrow(/begins with its start/);
  expect(() => after(START, START)).toThrow(/started before/);
  const stopped: RunEvent = { kind: "stopped", reason: "enough" };
  expect(after(START, stopped)).toMatchObject({ status: "stopped", reason: "enough" });
  expect(() => after(START, stopped, to("discuss", "spec"))).toThrow(/has ended/);
});
