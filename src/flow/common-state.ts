import type { CommonState, PlanStep } from "../model/flow-state.ts";

/** Counts the round first. False when it was one too many. */
export function countRound(common: CommonState): boolean {
  common.rounds_used += 1;
  return common.rounds_used <= common.round_limit;
}

export function isExhausted({ rounds_used, round_limit }: CommonState): boolean {
  return rounds_used >= round_limit;
}

/** For people: the first step is 1, and after the last one it stays there. */
export function progressOf({ current_step, plan_steps }: CommonState): {
  readonly step: number;
  readonly total: number;
} {
  const total = plan_steps.length;
  return { step: Math.min(current_step + 1, total), total };
}

export function finishPlan(common: CommonState, steps: readonly PlanStep[]): void {
  common.plan_steps = steps;
  common.current_step = 0;
  common.phase = "waiting_confirm";
}

export function confirmPlan(common: CommonState): void {
  common.phase = "executing";
}

export function rejectPlan(common: CommonState): void {
  common.plan_steps = [];
  common.current_step = 0;
  common.phase = "planning";
}
