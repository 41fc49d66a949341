import { questionIn } from "../../interactions/ask-user-tool.ts";
import { openAskUser, openInteraction } from "../../interactions/runtime-state-moves.ts";
import type { PendingTool } from "../../model/interaction.ts";
import { cutText } from "../../util/error-text.ts";
import { type Action, readAction } from "../actions.ts";
import { countRound } from "../common-state.ts";
import { correct, modelOf } from "../correct.ts";
import { executePrompt } from "../prompts.ts";
import { askPerson, chooseQuestion } from "../questions.ts";
import type { Run } from "../run.ts";
import { type Act, actId, openAct } from "../work.ts";

const ALLOWED = ["call_tool", "ask_user", "next_step", "done"] as const;
const LONGEST_RESULT = 16_000;

/**
 * Either does what was chosen, or lets the model choose: never both, so that a choice is saved before it has an effect. What
 * was chosen, or accepted by a person, is done without asking the model again.
 */
export async function execute(run: Run): Promise<void> {
  const { state, work, parts, request } = run;
  const act = openAct(work);
  if (act?.kind === "question") return askPerson(run, act, "execute");
  if (act !== undefined) {
    const tool = state.mailbox?.tool ?? act.tool;
    state.mailbox = undefined;
    return callTool(run, act, tool);
  }
  countRound(state.common);
  const prompt = executePrompt(state.common, work, parts.tools());
  const said = await modelOf(parts).ask(prompt, request.signal);
  const read = readAction(said, ALLOWED);
  if (!read.ok) return correct(run, said, read.problem);
  work.corrections = 0;
  choose(run, read.action);
}

function choose(run: Run, action: Exclude<Action, { action: "plan" }>): void {
  const { state, work } = run;
  const { common } = state;
  switch (action.action) {
    case "call_tool": {
      const { tool: tool_name, args: args_json, summary } = action;
      const id = actId(common, [tool_name, args_json]);
      work.entries.push({ kind: "call", id, tool: { tool_name, args_json, summary } });
      return;
    }
    case "ask_user":
      chooseQuestion(run, action);
      return;
    case "next_step":
    case "done":
      work.entries.push({ kind: "step", step: common.current_step, check: action.check });
      common.current_step += 1;
      if (action.action === "done" || common.current_step >= common.plan_steps.length) {
        common.phase = "done";
      }
      return;
  }
}

async function callTool(run: Run, { id }: Act, tool: PendingTool): Promise<void> {
  const { state, work, session } = run;
  const { common } = state;
  const answer = await session.call({
    callId: id,
    key: id,
    tool: tool.tool_name,
    input: tool.args_json,
    messageId: common.trace_id,
    turn: common.rounds_used,
  });
  switch (answer.answer) {
    case "pending":
      if (answer.decisionId === "") return waitForReply(run, tool, answer.interactionId);
      state.mailbox = { tool, interactionId: answer.interactionId };
      common.phase = "waiting_confirm";
      return;
    case "unknown":
      // A person has to find out first; whoever comes back then asks for the same call again and is told.
      openInteraction(
        state,
        {
          interactionId: answer.interactionId ?? answer.operationId,
          displayText: answer.text,
          resumeNode: "execute",
        },
        { type: "connection_lost", pending_tool: tool },
      );
      return;
    default: {
      const text = cutText(answer.text.toWellFormed(), LONGEST_RESULT);
      work.entries.push({ kind: "result", id, answer: answer.answer, text });
    }
  }
}

/** The model asked through the tool for questions: there is nothing to confirm, only to answer. */
function waitForReply({ state }: Run, tool: PendingTool, interactionId: string): void {
  const displayText = questionIn(JSON.parse(tool.args_json)).text;
  openAskUser(state, { interactionId, displayText, resumeNode: "execute" });
}
