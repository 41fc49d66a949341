import { readAction } from "../actions.ts";
import { countRound, finishPlan } from "../common-state.ts";
import { correct, modelOf } from "../correct.ts";
import { planPrompt } from "../prompts.ts";
import { askPerson, chooseQuestion } from "../questions.ts";
import type { Run } from "../run.ts";
import { openAct } from "../work.ts";

const ALLOWED = ["plan", "ask_user"] as const;

/** One round of planning: a plan, a question, or an answer that cannot be used. Nothing here has an effect. */
export async function plan(run: Run): Promise<void> {
  const { state, work, parts, request } = run;
  const { common } = state;
  const act = openAct(work);
  if (act?.kind === "question") return askPerson(run, act, "plan");
  countRound(common);
  const said = await modelOf(parts).ask(planPrompt(work, parts.tools()), request.signal);
  const read = readAction(said, ALLOWED);
  if (!read.ok) return correct(run, said, read.problem);
  work.corrections = 0;
  const { action } = read;
  if (action.action === "ask_user") return chooseQuestion(run, action);
  work.entries.push({ kind: "planned", steps: action.steps.map(({ text }) => text) });
  finishPlan(common, action.steps);
}
