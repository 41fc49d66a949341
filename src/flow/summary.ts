import type { CommonState } from "../model/flow-state.ts";
import { isExhausted } from "./common-state.ts";
import type { Work } from "./work.ts";

/** What happened, put together without a model: each step done or open, and why it ended early if it did. */
export function mechanicalSummary(common: CommonState, work: Work): string {
  const checks = new Map<number, string>();
  for (const entry of work.entries) {
    if (entry.kind === "step") checks.set(entry.step, entry.check);
  }
  const { plan_steps: steps, round_limit } = common;
  const goal = work.entries.find((entry) => entry.kind === "said")?.text ?? "";
  const lines = steps.map(({ text }, at) => {
    const check = checks.get(at);
    return check === undefined ? `- [open] ${text}` : `- [done] ${text} (${check})`;
  });
  const isWhole = steps.length > 0 && checks.size === steps.length;
  return [
    goal === "" ? [] : [`Goal: ${goal}`],
    steps.length === 0
      ? ["No plan was made."]
      : [`${checks.size} of ${steps.length} steps are done.`, ...lines],
    work.problem === "" ? [] : [work.problem],
    isExhausted(common) && !isWhole
      ? [`It ended early: all ${round_limit} rounds are used up.`]
      : [],
  ]
    .flat()
    .join("\n");
}
