import { type Opening, openInteraction } from "../interactions/runtime-state-moves.ts";
import type { CommonState } from "../model/flow-state.ts";
import type { InteractionSnapshot } from "../model/interaction.ts";
import type { Question, QuestionAnswer } from "../model/question.ts";
import { confirmPlan, rejectPlan } from "./common-state.ts";
import { replyText } from "./questions.ts";
import type { Run } from "./run.ts";
import { actId } from "./work.ts";

const ACCEPT = "accept";
const REJECT = "reject";

/** The confirmation of a plan as it lies in the inbox: the same question for the same plan, in every process. */
export function planQuestion(common: CommonState): Question {
  const text = planText(common);
  return {
    callId: actId({ ...common, current_step: 0 }, ["plan", text]),
    text,
    choices: [ACCEPT, REJECT],
    metadata: PLAN,
  };
}

const PLAN = { confirms: "plan" } as const;

/** In the flow it is what it is in the inbox: a question, answered with accept or reject. */
export function openPlanQuestion(state: Run["state"], opening: Opening): void {
  openInteraction(state, opening, { type: "ask_user", metadata: PLAN });
}

/** Conversations that were saved by an earlier version wait for a confirmation without a tool. */
export function isAboutPlan({ type, metadata, pending_tool }: InteractionSnapshot): boolean {
  if (type === "ask_user") return metadata?.["confirms"] === PLAN.confirms;
  return type === "confirm" && pending_tool === undefined;
}

/** Made without the model: a person confirms what will be done, not what somebody says about it. */
function planText({ plan_steps }: CommonState): string {
  const lines = plan_steps.map(
    ({ text, done_when }, at) => `${at + 1}. ${text} (done when: ${done_when})`,
  );
  return ["Shall this be done?", ...lines].join("\n");
}

/** Only a plain yes is a yes. */
export function applyPlanAnswer(
  { state, work }: Run,
  answer: Exclude<QuestionAnswer, { answer: "pending" }>,
): void {
  if (answer.answer === "answered" && answer.value === ACCEPT) {
    confirmPlan(state.common);
    return;
  }
  const said = replyText(answer);
  work.entries.push({ kind: "note", text: `The plan was not accepted (${said}). Make another.` });
  rejectPlan(state.common);
}
