import { hasPendingInteraction } from "../../interactions/runtime-state.ts";
import { findJson } from "../../staging/validators/find-json.ts";
import { modelOf } from "../correct.ts";
import { chatPrompt } from "../prompts.ts";
import type { Run } from "../run.ts";
import { takeAnswer } from "../take-answer.ts";

/** Where every request enters. With something pending it only looks for the answer; otherwise it talks, or sees that a plan is needed. */
export async function chat(run: Run): Promise<void> {
  const { state, work, parts, request, isNew } = run;
  const { common } = state;
  if (hasPendingInteraction(state)) return takeAnswer(run);
  const { message, history, signal } = request;
  if (!isNew) {
    if (message === "") return;
    work.entries.push({ kind: "said", text: message });
    // The question was called off and nothing said how to go on: now somebody has.
    if (common.phase === "interrupted") common.phase = "planning";
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

/** Anything else is taken as talk, which can do no harm. */
function wantsPlan(said: string): boolean {
  return findJson(said).values.some((json) => /^\{\s*"action"\s*:\s*"plan"/.test(json));
}
