import { hasPendingInteraction } from "../../interactions/runtime-state.ts";
import { wantsPlan } from "../actions.ts";
import { modelOf } from "../correct.ts";
import { chatPrompt } from "../prompts.ts";
import type { Run } from "../run.ts";
import { handOverAgain, takeAnswer } from "../take-answer.ts";
import { openAct } from "../work.ts";

/** Where every request enters. With something pending it only looks for the answer; otherwise it talks, or sees that a plan is needed. */
export async function chat(run: Run): Promise<void> {
  const { state, work, parts, request, isNew } = run;
  const { common } = state;
  if (hasPendingInteraction(state)) return takeAnswer(run);
  const { message, history, signal } = request;
  if (!isNew) {
    await handOverAgain(run);
    if (message === "") return;
    work.entries.push({ kind: "said", text: message });
    // The question was called off and nothing said how to go on: now somebody has.
    if (common.phase === "interrupted") planAnew(run);
    return;
  }
  const said = await modelOf(parts).ask(chatPrompt(message, parts.tools(), history), signal);
  work.entries.push({ kind: "said", text: message });
  if (wantsPlan(said)) {
    common.phase = "planning";
    return;
  }
  common.phase = "chatting";
  run.outcome = { outcome: "replied", text: said };
  await parts.say({ type: "reply", conversationId: common.conversation_id, text: said });
}

/** What was chosen before is settled, so that no later step takes it for its own. */
function planAnew({ state, work }: Run): void {
  const act = openAct(work);
  const text = "It was called off.";
  if (act?.kind === "call")
    work.entries.push({ kind: "result", id: act.id, answer: "denied", text });
  if (act?.kind === "question") work.entries.push({ kind: "reply", id: act.id, text });
  state.common.phase = "planning";
}
