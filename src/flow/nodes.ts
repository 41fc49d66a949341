import { questionIn } from "../gate/ask.ts";
import { SallyportError } from "../model/errors.ts";
import type { CommonState } from "../model/flow-state.ts";
import type { PendingTool } from "../model/interaction.ts";
import { cutText } from "../util/error-text.ts";
import {
  type Action,
  chatPrompt,
  deliverPrompt,
  executePrompt,
  type FlowModel,
  planPrompt,
  readAction,
  wantsPlan,
} from "./prompts.ts";
import type { FlowEvent, FlowParts, Run } from "./run.ts";
import {
  hasPendingInteraction,
  type Mailbox,
  openAskUser,
  openConfirm,
  openInteraction,
} from "./runtime-state.ts";
import {
  applyPlanAnswer,
  askPerson,
  chooseQuestion,
  handOverAgain,
  isAboutPlan,
  openPlanQuestion,
  planQuestion,
  takeAnswer,
} from "./take-answer.ts";
import {
  type Act,
  actId,
  countRound,
  finishPlan,
  isExhausted,
  openAct,
  type Work,
} from "./work.ts";

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

const EXECUTE_ALLOWED = ["call_tool", "ask_user", "next_step", "done"] as const;
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
  const read = readAction(said, EXECUTE_ALLOWED);
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

/** Tells the client what the run waits for, and ends it on this connection. The state was saved by the node before. */
export async function interrupt(run: Run): Promise<void> {
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

/** Closes the run with a summary, sent in small pieces, and forgets what was stored of it. */
export async function deliver(run: Run): Promise<void> {
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

/** The model's words, or undefined when there is no model, it failed, or it had nothing to say. */
async function write(run: Run, facts: string): Promise<string | undefined> {
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
    // A client that is gone gets no other summary either; it comes back for this one.
    if (sent.failed !== undefined || request.signal?.aborted) throw error;
    parts.problem({ conversationId, what: "summary", error });
  }
  if (sent.any) await parts.say({ type: "restart", conversationId });
  return undefined;
}

async function sendPieces({ parts, state }: Run, text: string): Promise<void> {
  const { conversation_id: conversationId } = state.common;
  for (let at = 0; at < text.length; ) {
    const piece = cutText(text.slice(at), LONGEST_PIECE);
    await parts.say({ type: "piece", conversationId, text: piece });
    at += piece.length;
  }
}

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

const LONGEST_QUOTE = 2_000;

/** Tells the model what was wrong with its answer. After too many in a row the run ends with what it has. */
function correct({ state, work, parts }: Run, said: string, problem: string): void {
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

/** Throws invalid_input for a flow that was made without one. */
function modelOf({ model }: Pick<FlowParts, "model">): FlowModel {
  if (model !== undefined) return model;
  const hint = "A flow without a model can deliver what is stored, but not plan or execute.";
  throw new SallyportError("invalid_input", { what: "model", hint });
}
