import { expect, test } from "vitest";
import { FLOW_PHASES } from "../model/flow-state.ts";
import { createRuntimeState } from "./runtime-state.ts";
import {
  confirmPlan,
  countRound,
  finishPlan,
  isExhausted,
  progressOf,
  rejectPlan,
} from "./work.ts";

const STEPS = [
  { text: "a", done_when: "b" },
  { text: "c", done_when: "d" },
];

test("I-68 the common state holds ids, phase, plan, step and rounds; 30 rounds unless said otherwise", () => {
  const { common } = createRuntimeState();
  expect(Object.keys(common).toSorted()).toEqual([
    ...["conversation_id", "current_step", "phase", "plan_steps", "round_limit"],
    ...["rounds_used", "trace_id", "user_id"],
  ]);
  expect(common.round_limit).toBe(30);
  expect(FLOW_PHASES.slice(0, 4)).toEqual(["planning", "waiting_confirm", "executing", "done"]);
});

test("I-69 a round is counted first, and the last one within the limit exhausts it", () => {
  const { common } = createRuntimeState({ round_limit: 2 });
  const seen = [1, 2, 3].map(() => [countRound(common), isExhausted(common), common.rounds_used]);
  expect(seen).toEqual([
    [true, false, 1],
    [true, true, 2],
    [false, true, 3],
  ]);
});

test("I-69 progress starts at 1 and never passes the total", () => {
  const at = (current_step: number) =>
    progressOf(createRuntimeState({ plan_steps: STEPS, current_step }).common);
  expect([0, 1, 2, 9].map(at).map(({ step, total }) => `${step}/${total}`)).toEqual([
    ...["1/2", "2/2", "2/2", "2/2"],
  ]);
  expect(progressOf(createRuntimeState().common)).toEqual({ step: 0, total: 0 });
});

test("I-70 a plan is stored and waits, is confirmed, or is emptied", () => {
  const { common } = createRuntimeState({ current_step: 4 });
  finishPlan(common, STEPS);
  expect(common).toMatchObject({
    plan_steps: STEPS,
    current_step: 0,
    phase: "waiting_confirm",
  });
  confirmPlan(common);
  expect(common).toMatchObject({ plan_steps: STEPS, phase: "executing" });
  rejectPlan(common);
  expect(common).toMatchObject({ plan_steps: [], phase: "planning" });
});
