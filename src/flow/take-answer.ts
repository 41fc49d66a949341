import { SallyportError } from "../model/errors.ts";
import type { CommonState } from "../model/flow-state.ts";
import type { InteractionSnapshot, Question, QuestionAnswer } from "../model/interaction.ts";
import type { NodeName, Run } from "./run.ts";
import {
  hasPendingInteraction,
  type Opening,
  openAskUser,
  openInteraction,
  resumeFromInteraction,
} from "./runtime-state.ts";
import { type Act, actId, confirmPlan, openAct, rejectPlan, type Work } from "./work.ts";

/**
 * Looks up what a person has decided about the open interaction and goes on accordingly. The durable record decides, never
 * what a client says about it. Without an answer everything stays as it is.
 */
export async function takeAnswer(run: Run): Promise<void> {
  const { pending } = run.state;
  if (pending === undefined || !hasPendingInteraction(run.state)) return;
  if (pending.type === "connection_lost") return goOn(run, pending);
  if (isAboutPlan(pending)) return takePlanAnswer(run);
  return pending.type === "ask_user" ? takeReply(run) : takeToolAnswer(run, pending);
}

/**
 * For a run that was saved between Execute and Confirm: the mailbox is gone, but what was chosen is known, and so is the question
 * about it.
 */
export async function handOverAgain({ state, work, session }: Run): Promise<void> {
  const act = openAct(work);
  if (state.common.phase !== "waiting_confirm" || act?.kind !== "call") return;
  const result = await session.resultOf(act.id);
  if (result?.answer === "pending") {
    state.mailbox = { tool: act.tool, interactionId: result.interactionId };
    return;
  }
  // It was decided in the meantime: Execute asks for it under its key and is told.
  state.common.phase = "executing";
}

/**
 * Nothing is asked: what was under way is asked for again under its key, and answers what became of it. While nobody knows,
 * nothing changes, however often somebody comes back.
 */
async function goOn(
  { state, work, session }: Run,
  { interaction_id: interactionId, pending_tool: tool }: InteractionSnapshot,
): Promise<void> {
  const act = openAct(work);
  const result = act === undefined ? undefined : await session.resultOf(act.id);
  if (result?.answer === "unknown") {
    // Asked about since, or tried once more and lost again: the flow shows the question that is open now.
    const { interactionId: id = interactionId } = result;
    if (state.pending !== undefined) state.pending = { ...state.pending, interaction_id: id };
    return;
  }
  resumeFromInteraction(state);
  if (tool !== undefined) state.mailbox = { tool, interactionId };
}

async function takeReply({ state, work, session }: Run): Promise<void> {
  const act = openAct(work);
  if (act?.kind === "call") {
    // Asked through a tool: Execute asks for the same call again and gets the answer as its result.
    if ((await session.resultOf(act.id))?.answer !== "pending") resumeFromInteraction(state);
    return;
  }
  const question = openAs(work, "question");
  const answer = await session.ask(askedOf(question));
  if (answer.answer === "pending") return;
  work.entries.push({ kind: "reply", id: question.id, text: replyText(answer) });
  resumeFromInteraction(state);
}

async function takePlanAnswer(run: Run): Promise<void> {
  const answer = await run.session.ask(planQuestion(run.state.common));
  if (answer.answer === "pending") return;
  resumeFromInteraction(run.state);
  applyPlanAnswer(run, answer);
}

async function takeToolAnswer(
  { state, work, session }: Run,
  { interaction_id, pending_tool: tool }: InteractionSnapshot,
): Promise<void> {
  const call = openAs(work, "call");
  const result = await session.resultOf(call.id);
  if (tool === undefined) return;
  if (result?.answer === "pending") {
    if (result.interactionId === interaction_id) return;
    // Another question took its place, because the input was edited or the target has changed: that one is shown now.
    resumeFromInteraction(state);
    state.mailbox = { tool, interactionId: result.interactionId, isChanged: true };
    return;
  }
  resumeFromInteraction(state);
  // The restored phase is the one in which the question was opened, and would lead back to it.
  state.common.phase = "executing";
  if (result?.answer === "denied") {
    work.entries.push({ kind: "result", id: call.id, answer: "denied", text: result.text });
    return;
  }
  state.mailbox = { tool, interactionId: interaction_id };
}

function openAs<Kind extends Act["kind"]>(work: Work, kind: Kind): Act & { kind: Kind } {
  const act = openAct(work);
  if (act?.kind === kind) return act as Act & { kind: Kind };
  const hint =
    "It waits for an answer to something it did not ask. Delete its state to start anew.";
  throw new SallyportError("damaged_record", { what: "work", hint });
}

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

function askedOf({ id, text, choices }: OpenQuestion): Question {
  return { callId: id, text, ...(choices.length === 0 ? {} : { choices }) };
}

function replyText(answer: Exclude<QuestionAnswer, { answer: "pending" }>): string {
  if (answer.answer === "unanswered") return answer.text;
  return typeof answer.value === "string" ? answer.value : JSON.stringify(answer.value);
}
