import { imageOf } from "../gate/image-result.ts";
import { questionIn } from "../gate/inbox.ts";
import { SallyportError } from "../model/errors.ts";
import type { CommonState } from "../model/flow-state.ts";
import type {
  InteractionSnapshot,
  PendingTool,
  Question,
  QuestionAnswer,
} from "../model/interaction.ts";
import type { Progress } from "../tools/tool.ts";
import { definedFields } from "../util/defined-fields.ts";
import { cutText } from "../util/error-text.ts";
import type { FlowEvent, FlowParts, FlowRun, NodeName } from "./create-flow.ts";
import {
  type Action,
  chatPrompt,
  deliverPrompt,
  executePrompt,
  type FlowModel,
  planPrompt,
  readAction,
  type ShownTool,
  wantsPlan,
} from "./prompts.ts";
import {
  type Act,
  actId,
  confirmPlan,
  countRound,
  finishPlan,
  hasPendingInteraction,
  isExhausted,
  type Mailbox,
  type Opening,
  openAct,
  openAskUser,
  openConfirm,
  openInteraction,
  rejectPlan,
  resumeFromInteraction,
  type Work,
} from "./runtime-state.ts";

/** The entry of every request. With an open question it only checks for the answer; otherwise it chats, or sees that a plan is needed. */
export async function chat(run: FlowRun): Promise<void> {
  const { state, work, parts, request, isNew } = run;
  const { common } = state;
  if (hasPendingInteraction(state)) return takeAnswer(run);
  const { message, history, signal } = request;
  if (!isNew) {
    await handOverAgain(run);
    if (message === "") return;
    work.entries.push({ kind: "said", text: message });
    // The question was canceled, and this message says how to continue.
    if (common.phase === "interrupted") planAnew(run);
    return;
  }
  const said = await modelOf(parts).ask(chatPrompt(message, await toolsOf(run), history), signal);
  work.entries.push({ kind: "said", text: message });
  if (wantsPlan(said)) {
    common.phase = "planning";
    return;
  }
  common.phase = "chatting";
  run.outcome = { outcome: "replied", text: said };
  await parts.say({ type: "reply", conversationId: common.conversation_id, text: said });
}

/** Asked for in every round: a search loads more. */
async function toolsOf({ session, parts }: FlowRun): Promise<readonly ShownTool[]> {
  const offered = await session.tools?.();
  if (offered === undefined) return parts.tools();
  const names = new Set(parts.tools().map(({ name }) => name));
  return offered.filter(({ name }) => names.has(name));
}

/** Settles the open choice, so that no later step executes it. */
function planAnew({ state, work }: FlowRun): void {
  const act = openAct(work);
  const text = "It was canceled.";
  if (act?.kind === "call")
    work.entries.push({ kind: "result", id: act.id, answer: "denied", text });
  if (act?.kind === "question") work.entries.push({ kind: "reply", id: act.id, text });
  state.common.phase = "planning";
}

const ALLOWED = ["plan", "ask_user"] as const;

/** One round of planning: a plan, a question, or an unusable answer. It has no effects. */
export async function plan(run: FlowRun): Promise<void> {
  const { state, work } = run;
  const act = openAct(work);
  if (act?.kind === "question") return askPerson(run, act, "plan");
  const tools = await toolsOf(run);
  const action = await nextAction(run, () => planPrompt(work, tools), ALLOWED);
  if (action === undefined) return;
  if (action.action === "ask_user") return chooseQuestion(run, action);
  work.entries.push({ kind: "planned", steps: action.steps.map(({ text }) => text) });
  finishPlan(state.common, action.steps);
}

/** Asks a person to confirm a tool call if there is one, otherwise the plan. The card is sent before the question is saved. */
export async function confirm(run: FlowRun): Promise<void> {
  const { mailbox, common } = run.state;
  if (mailbox !== undefined) return confirmTool(run, mailbox);
  if (common.plan_steps.length > 0) return confirmPlanned(run);
  const hint = "There is neither a tool call nor a plan to confirm.";
  throw new SallyportError("illegal_transition", { id: common.conversation_id, hint });
}

async function confirmTool(run: FlowRun, mailbox: Mailbox): Promise<void> {
  const { tool, interactionId } = mailbox;
  const text = toolText(mailbox);
  await sendCard(run, interactionId, text, tool);
  run.state.mailbox = undefined;
  openConfirm(run.state, { interactionId, displayText: text, resumeNode: "execute" }, tool);
}

async function confirmPlanned(run: FlowRun): Promise<void> {
  const question = planQuestion(run.state.common);
  const answer = await run.session.ask(question);
  // Answered in the meantime.
  if (answer.answer !== "pending") return applyPlanAnswer(run, answer);
  const { interactionId } = answer;
  await sendCard(run, interactionId, question.text, undefined);
  openPlanQuestion(run.state, { interactionId, displayText: question.text, resumeNode: "execute" });
}

function sendCard(
  { parts, state }: FlowRun,
  interactionId: string,
  text: string,
  tool: PendingTool | undefined,
): Promise<void> {
  const conversationId = state.common.conversation_id;
  return parts.say({ type: "card", conversationId, card: { interactionId, text, tool } });
}

function toolText({ tool, interactionId, isChanged }: Mailbox): string {
  const { tool_name, args_json, summary } = tool;
  // Only the inbox has the current input; the earlier one must not be confirmed.
  if (isChanged) return `Changed in review: ${summary}\nLook at ${interactionId} in the inbox.`;
  return `Shall this be done? ${summary}\n${tool_name} ${args_json}`;
}

const EXECUTE_ALLOWED = ["call_tool", "ask_user", "next_step", "done"] as const;
const LONGEST_RESULT = 16_000;

/**
 * Either executes the choice, or lets the model choose: never both, so that a choice is saved before it has an effect. What
 * was chosen, or accepted by a person, is executed without asking the model again.
 */
export async function execute(run: FlowRun): Promise<void> {
  const { state, work } = run;
  const act = openAct(work);
  if (act?.kind === "question") return askPerson(run, act, "execute");
  if (act !== undefined) {
    const tool = state.mailbox?.tool ?? act.tool;
    state.mailbox = undefined;
    return callTool(run, act, tool);
  }
  const tools = await toolsOf(run);
  const prompt = () => executePrompt(state.common, work, tools);
  const action = await nextAction(run, prompt, EXECUTE_ALLOWED);
  if (action === undefined) return;
  choose(run, action);
  if (state.common.phase === "done") await mayStop(run);
}

/** A hook may keep the agent at work; the limit of rounds ends it in any case. */
async function mayStop({ state: { common }, work, session }: FlowRun): Promise<void> {
  if (isExhausted(common)) return;
  const check = work.entries.at(-1);
  const input = check?.kind === "step" ? check.check : "";
  const said = await session.reach?.("stop", input);
  if (said?.answer !== "deny") return;
  common.phase = "executing";
  common.current_step = Math.min(common.current_step, common.plan_steps.length - 1);
  work.entries.push({ kind: "note", text: `You may not stop yet: ${said.text}` });
}

/** One round: what the model chooses, or undefined after an unusable answer, which is corrected. */
async function nextAction<Name extends Action["action"]>(
  run: FlowRun,
  prompt: () => Parameters<FlowModel["ask"]>[0],
  allowed: readonly Name[],
): Promise<Extract<Action, { action: Name }> | undefined> {
  countRound(run.state.common);
  const said = await modelOf(run.parts).ask(prompt(), run.request.signal);
  const read = readAction(said, allowed);
  if (read.ok) {
    run.work.corrections = 0;
    return read.action;
  }
  correct(run, said, read.problem);
  return undefined;
}

function choose(run: FlowRun, action: Exclude<Action, { action: "plan" }>): void {
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

async function callTool(run: FlowRun, { id }: Act, tool: PendingTool): Promise<void> {
  const { state, work, session } = run;
  const { common } = state;
  const request = {
    callId: id,
    key: id,
    tool: tool.tool_name,
    input: tool.args_json,
    messageId: common.trace_id,
    turn: common.rounds_used,
  };
  const { signal } = run.request;
  const onProgress = (callId: string, report: Progress) => tellProgress(run, callId, report);
  const answer = await session.call(request, definedFields({ signal, onProgress }));
  switch (answer.answer) {
    case "pending":
      if (answer.decisionId === "") return waitForReply(run, tool, answer.interactionId);
      state.mailbox = { tool, interactionId: answer.interactionId };
      common.phase = "waiting_confirm";
      return;
    case "unknown":
      // A person must find out first; a later request repeats the call by its key and gets the outcome.
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
      const image = imageOf(answer);
      if (image !== undefined) work.images.set(id, image);
    }
  }
}

/** The call does not wait for its listeners, and does not fail with them. */
function tellProgress({ parts, state }: FlowRun, callId: string, report: Progress): void {
  const { conversation_id: conversationId } = state.common;
  parts
    .say({ type: "progress", conversationId, callId, report })
    .catch((error: unknown) => parts.problem({ conversationId, what: "progress", error }));
}

/** The model used the ask_user tool: there is a question to answer and nothing to confirm. */
function waitForReply({ state }: FlowRun, tool: PendingTool, interactionId: string): void {
  const displayText = questionIn(JSON.parse(tool.args_json)).text;
  openAskUser(state, { interactionId, displayText, resumeNode: "execute" });
}

/** Sends the open question to the client and ends the request. The previous node has saved the state. */
export async function interrupt(run: FlowRun): Promise<void> {
  const { pending, common } = run.state;
  if (pending === undefined) return;
  const interaction = { ...pending };
  const type = isAboutPlan(pending) ? "confirmation" : PATHS[pending.type];
  await run.parts.say({ type, conversationId: common.conversation_id, interaction });
  run.outcome = { outcome: "waiting", interaction };
}

const PATHS = {
  ask_user: "question",
  confirm: "confirmation",
  connection_lost: "connection_lost",
} as const satisfies Record<string, FlowEvent["type"]>;

const LONGEST_PIECE = 48;

/** Ends the run with a summary, sent in small pieces, and deletes its stored state. */
export async function deliver(run: FlowRun): Promise<void> {
  const { state, work, parts } = run;
  const { common } = state;
  const { conversation_id: conversationId } = common;
  const facts = mechanicalSummary(common, work);
  const written = await write(run, facts);
  if (written === undefined) await sendPieces(run, facts);
  const summary = written ?? facts;
  const isMechanical = written === undefined;
  await parts.say({ type: "delivered", conversationId, summary, isMechanical });
  common.phase = "done";
  run.outcome = { outcome: "delivered", summary };
  if (run.revision === 0) return;
  try {
    await parts.states?.delete(conversationId, common.trace_id);
  } catch (error) {
    parts.problem({ conversationId, what: "delete", error });
  }
}

/** The model's summary, or undefined when there is no model, it failed, or its answer was blank. */
async function write(run: FlowRun, facts: string): Promise<string | undefined> {
  const { state, work, parts, request } = run;
  const { conversation_id: conversationId } = state.common;
  if (parts.model === undefined) return undefined;
  const sent = { any: false, failed: undefined as unknown };
  const piece = async (text: string) => {
    sent.any = true;
    try {
      await sendPieces(run, text);
    } catch (error) {
      sent.failed = error;
      throw error;
    }
  };
  try {
    const text = await parts.model.stream(deliverPrompt(work, facts), piece, request.signal);
    if (text.trim() !== "") return text;
  } catch (error) {
    // A disconnected client gets no other summary; it can resume.
    if (sent.failed !== undefined || request.signal?.aborted) throw error;
    parts.problem({ conversationId, what: "summary", error });
  }
  if (sent.any) await parts.say({ type: "restart", conversationId });
  return undefined;
}

async function sendPieces({ parts, state }: FlowRun, text: string): Promise<void> {
  const { conversation_id: conversationId } = state.common;
  for (let at = 0; at < text.length; ) {
    const piece = cutText(text.slice(at), LONGEST_PIECE);
    await parts.say({ type: "piece", conversationId, text: piece });
    at += piece.length;
  }
}

/** A summary without a model: each step done or open, and why the run ended early if it did. */
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

const LONGEST_QUOTE = 2_000;

/** Adds a correction for the model. After too many in a row the run ends. */
function correct({ state, work, parts }: FlowRun, said: string, problem: string): void {
  work.corrections += 1;
  if (work.corrections > parts.maxCorrections) {
    work.problem = `It ended early: ${work.corrections} answers of the model in a row could not be used.`;
    state.common.phase = "done";
    return;
  }
  const text = `That could not be used: ${problem}. Answer again with one JSON object of the forms listed.`;
  const quote = cutText(said.toWellFormed(), LONGEST_QUOTE);
  work.entries.push({ kind: "correction", said: quote === "" ? "(nothing)" : quote, text });
}

/** Throws invalid_input for a flow without a model. */
function modelOf({ model }: Pick<FlowParts, "model">): FlowModel {
  if (model !== undefined) return model;
  const hint = "A flow without a model can deliver what is stored, but not plan or execute.";
  throw new SallyportError("invalid_input", { what: "model", hint });
}

/**
 * Reads the person's answer to the open interaction and continues accordingly. The stored record decides, never the client.
 * Without an answer nothing changes.
 */
export async function takeAnswer(run: FlowRun): Promise<void> {
  const { pending } = run.state;
  if (pending === undefined || !hasPendingInteraction(run.state)) return;
  if (pending.type === "connection_lost") return resumeLost(run, pending);
  if (isAboutPlan(pending)) return takePlanAnswer(run);
  return pending.type === "ask_user" ? takeReply(run) : takeToolAnswer(run, pending);
}

/** For a run that was saved between Execute and Confirm: fills the mailbox again from the choice and its question. */
export async function handOverAgain({ state, work, session }: FlowRun): Promise<void> {
  const act = openAct(work);
  if (state.common.phase !== "waiting_confirm" || act?.kind !== "call") return;
  const result = await session.resultOf(act.id);
  if (result?.answer === "pending") {
    state.mailbox = { tool: act.tool, interactionId: result.interactionId };
    return;
  }
  // It was decided in the meantime: Execute repeats the call by its key and gets the result.
  state.common.phase = "executing";
}

/** Asks for the result of the lost call by its key. While it is unknown, nothing changes. */
async function resumeLost(
  { state, work, session }: FlowRun,
  { interaction_id: interactionId, pending_tool: tool }: InteractionSnapshot,
): Promise<void> {
  const act = openAct(work);
  const result = act === undefined ? undefined : await session.resultOf(act.id);
  if (result?.answer === "unknown") {
    // The call may have been repeated and lost again: show the current question.
    const { interactionId: id = interactionId } = result;
    if (state.pending !== undefined) state.pending = { ...state.pending, interaction_id: id };
    return;
  }
  resumeFromInteraction(state);
  if (tool !== undefined) state.mailbox = { tool, interactionId };
}

async function takeReply({ state, work, session }: FlowRun): Promise<void> {
  const act = openAct(work);
  if (act?.kind === "call") {
    // Asked through a tool: Execute repeats the call and gets the answer as its result.
    if ((await session.resultOf(act.id))?.answer !== "pending") resumeFromInteraction(state);
    return;
  }
  const question = openAs(work, "question");
  const answer = await session.ask(askedOf(question));
  if (answer.answer === "pending") return;
  work.entries.push({ kind: "reply", id: question.id, text: replyText(answer) });
  resumeFromInteraction(state);
}

async function takePlanAnswer(run: FlowRun): Promise<void> {
  const answer = await run.session.ask(planQuestion(run.state.common));
  if (answer.answer === "pending") return;
  resumeFromInteraction(run.state);
  applyPlanAnswer(run, answer);
}

async function takeToolAnswer(
  { state, work, session }: FlowRun,
  { interaction_id, pending_tool: tool }: InteractionSnapshot,
): Promise<void> {
  const call = openAs(work, "call");
  const result = await session.resultOf(call.id);
  if (tool === undefined) return;
  if (result?.answer === "pending") {
    if (result.interactionId === interaction_id) return;
    // The input was edited or the target has changed: show the question that replaced this one.
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
    "It waits for an answer to a question it did not ask. Delete its state to start again.";
  throw new SallyportError("damaged_record", { what: "work", hint });
}

const ACCEPT = "accept";
const REJECT = "reject";

/** The confirmation of a plan in the inbox: the same question for the same plan, in every process. */
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

/** A question in the flow too, answered with accept or reject. */
export function openPlanQuestion(state: FlowRun["state"], opening: Opening): void {
  openInteraction(state, opening, { type: "ask_user", metadata: PLAN });
}

/** Conversations that were saved by an earlier version wait for a confirmation without a tool. */
export function isAboutPlan({ type, metadata, pending_tool }: InteractionSnapshot): boolean {
  if (type === "ask_user") return metadata?.["confirms"] === PLAN.confirms;
  return type === "confirm" && pending_tool === undefined;
}

/** Made without the model: a person confirms the steps, not a description of them. */
function planText({ plan_steps }: CommonState): string {
  const lines = plan_steps.map(
    ({ text, done_when }, at) => `${at + 1}. ${text} (done when: ${done_when})`,
  );
  return ["Shall this be done?", ...lines].join("\n");
}

/** Anything but the answer `accept` rejects the plan. */
export function applyPlanAnswer(
  { state, work }: FlowRun,
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

/** Records the model's question. It is asked after the next save. */
export function chooseQuestion(
  { state, work }: FlowRun,
  { question, choices }: { readonly question: string; readonly choices: readonly string[] },
): void {
  const id = actId(state.common, ["ask_user", question, ...choices]);
  work.entries.push({ kind: "question", id, text: question, choices });
}

/** Asks a person, and interrupts the run until there is an answer. */
export async function askPerson(
  run: FlowRun,
  question: OpenQuestion,
  node: NodeName,
): Promise<void> {
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
  return { callId: id, text, ...(choices.length > 0 && { choices }) };
}

function replyText(answer: Exclude<QuestionAnswer, { answer: "pending" }>): string {
  if (answer.answer === "unanswered") return answer.text;
  return typeof answer.value === "string" ? answer.value : JSON.stringify(answer.value);
}
