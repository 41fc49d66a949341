import type { Mailbox } from "../../interactions/runtime-state.ts";
import { openConfirm } from "../../interactions/runtime-state-moves.ts";
import { SallyportError } from "../../model/errors.ts";
import type { PendingTool } from "../../model/interaction.ts";
import { applyPlanAnswer, openPlanQuestion, planQuestion } from "../plan-question.ts";
import type { Run } from "../run.ts";

/** Shows a person what waits: a tool call if there is one, else the plan. The card goes out before the flow counts on it. */
export async function confirm(run: Run): Promise<void> {
  const { mailbox, common } = run.state;
  if (mailbox !== undefined) return confirmTool(run, mailbox);
  if (common.plan_steps.length > 0) return confirmPlanned(run);
  const hint = "There is neither a tool call nor a plan to confirm.";
  throw new SallyportError("illegal_transition", { id: common.conversation_id, hint });
}

async function confirmTool(run: Run, mailbox: Mailbox): Promise<void> {
  const { tool, interactionId } = mailbox;
  const text = toolText(mailbox);
  await sendCard(run, interactionId, text, tool);
  run.state.mailbox = undefined;
  openConfirm(run.state, { interactionId, displayText: text, resumeNode: "execute" }, tool);
}

async function confirmPlanned(run: Run): Promise<void> {
  const question = planQuestion(run.state.common);
  const answer = await run.session.ask(question);
  // Answered while nobody was listening.
  if (answer.answer !== "pending") return applyPlanAnswer(run, answer);
  const { interactionId } = answer;
  await sendCard(run, interactionId, question.text, undefined);
  openPlanQuestion(run.state, { interactionId, displayText: question.text, resumeNode: "execute" });
}

function sendCard(
  { parts, state }: Run,
  interactionId: string,
  text: string,
  tool: PendingTool | undefined,
): Promise<void> {
  const conversationId = state.common.conversation_id;
  return parts.say({ type: "card", conversationId, card: { interactionId, text, tool } });
}

function toolText({ tool, interactionId, isChanged }: Mailbox): string {
  const { tool_name, args_json, summary } = tool;
  // Only the inbox knows what would run now, and nobody shall say yes to what was shown before.
  if (isChanged) return `Changed in review: ${summary}\nLook at ${interactionId} in the inbox.`;
  return `Shall this be done? ${summary}\n${tool_name} ${args_json}`;
}
