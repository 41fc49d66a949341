import { openAskUser } from "../interactions/runtime-state-moves.ts";
import type { Question, QuestionAnswer } from "../model/question.ts";
import type { NodeName } from "./routes.ts";
import type { Run } from "./run.ts";
import { type Act, actId } from "./work.ts";

type OpenQuestion = Act & { kind: "question" };

/** Remembers what the model wants to know. It is asked after the next save. */
export function chooseQuestion(
  { state, work }: Run,
  { question, choices }: { readonly question: string; readonly choices: readonly string[] },
): void {
  const id = actId(state.common, ["ask_user", question, ...choices]);
  work.entries.push({ kind: "question", id, text: question, choices });
}

/** Asks a person, and stops here until there is an answer. */
export async function askPerson(run: Run, question: OpenQuestion, node: NodeName): Promise<void> {
  const { state, work, session } = run;
  const answer = await session.ask(askedOf(question));
  if (answer.answer !== "pending") {
    work.entries.push({ kind: "reply", id: question.id, text: replyText(answer) });
    return;
  }
  const { interactionId } = answer;
  openAskUser(state, { interactionId, displayText: question.text, resumeNode: node });
}

export function askedOf({ id, text, choices }: OpenQuestion): Question {
  return { callId: id, text, ...(choices.length === 0 ? {} : { choices }) };
}

export function replyText(answer: Exclude<QuestionAnswer, { answer: "pending" }>): string {
  if (answer.answer === "unanswered") return answer.text;
  return typeof answer.value === "string" ? answer.value : JSON.stringify(answer.value);
}
