// The inbox: what waits for a person and how it is put into words, who may decide it, and the questions that an agent asks
// people. Step "decide" closes what is open in it.

import { forPeople, isSallyportError, SallyportError } from "../model/errors.ts";
import type {
  Interaction,
  InteractionDraft,
  InteractionId,
  PendingTool,
  Preview,
  Question,
  QuestionAnswer,
  Requirement,
} from "../model/interaction.ts";
import { foldName, isName } from "../model/names.ts";
import type { CallAnswer } from "../model/operation.ts";
import { MAX_LIST } from "../model/record.ts";
import type { InteractionQuery, InteractionStore, Shown } from "../store/interactions.ts";
import { defineTool } from "../tools/define-tool.ts";
import { capabilityOf, type SafetyClass, type Tool } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";

/**
 * The one inbox: everything that waits for a person, from every agent and every depth. Each question is answered exactly
 * once. Throws not_found for an unknown id, already_answered (with who was first and what was decided) for a closed one,
 * approval_void for another hash than the one shown or when the deadline is over, not_allowed for a person who may not decide.
 */
export interface Inbox {
  /** Oldest first; without a status the open ones. Without a limit all of them, however many; with one at most 1,000 at a time. */
  list(query?: Partial<InteractionQuery>): Promise<readonly Interaction[]>;
  get(id: InteractionId): Promise<Interaction>;
  /**
   * What a confirmation shows, with the hash that an answer must name. A confirmation has the id of its decision. Undefined
   * when nothing was shown under this id.
   */
  shown(id: InteractionId): Promise<Shown | undefined>;
  /** Answers an `ask_user`. */
  answer(
    id: InteractionId,
    given: PersonsAnswer & { readonly answer: JsonValue },
  ): Promise<Interaction>;
  /** A person saw exactly this and approves it. With the last approval that is required it is executed, once. */
  approve(id: InteractionId, yes: PersonsYes): Promise<Approved>;
  reject(id: InteractionId, no: PersonsAnswer): Promise<Interaction>;
  /**
   * Another input for some of the calls (by their place, from 0): checked, reviewed and previewed again. The edited call is a
   * new confirmation that replaces this one; nothing runs before a person approves what it shows.
   */
  edit(
    id: InteractionId,
    edit: PersonsAnswer & { readonly inputs: Readonly<Record<number, JsonValue>> },
  ): Promise<Edited>;
  /**
   * Exactly these, each with the hash that was seen; those in `veto` are rejected. One that fails does not stop the others.
   * Throws not_allowed, and decides nothing, when those to be approved are calls of different tools or cannot be undone,
   * unless the review rules about all of them say `mayBatch`.
   */
  approveAll(
    list: readonly { readonly id: InteractionId; readonly hash: string }[],
    by: {
      readonly by: string;
      readonly reason?: string;
      readonly veto?: readonly InteractionId[];
    },
  ): Promise<readonly BatchItem[]>;
  /**
   * What a person found out about a call whose outcome was lost. Throws invalid_input, and settles nothing, when no undo can
   * be made from `resultData`.
   */
  settle(id: InteractionId, found: PersonsAnswer & FoundOut): Promise<CallAnswer>;
  handOver(
    id: InteractionId,
    to: { readonly by: string; readonly to: string; readonly reason?: string },
  ): Promise<Interaction>;
  /** A reviewer wants to know more before deciding; the agent replies through its session. The question stays open. */
  askBack(
    id: InteractionId,
    asked: { readonly by: string; readonly text: string },
  ): Promise<Interaction>;
  cancel(
    id: InteractionId,
    by: { readonly by: string; readonly reason: string },
  ): Promise<Interaction>;
  /** Closes what was not answered in time and escalates what waits too long. Call it periodically, in any number of processes. */
  sweep(): Promise<Swept>;
}

export interface PersonsAnswer {
  /** The hash of what was seen. */
  readonly hash: string;
  readonly by: string;
  readonly reason?: string;
}

export interface PersonsYes extends PersonsAnswer {
  /** The factor this yes is meant for; the first one open to this person when left out. */
  readonly factor?: string;
}

/**
 * - `waiting`: this yes counts, and another person's is still missing.
 * - `executed`: every call was executed.
 * - `asked_again`: nothing ran, because it is no longer what was approved; a new question asks about it as it is now.
 * - `held`: approved, and not executed yet: everything is stopped, or another process executes it.
 * - `unknown`: it is not known whether one of the calls happened; a person has to look.
 * - `failed`: it did not go through, and what was done of it was undone as far as that could be done.
 */
export type ApprovalOutcome = (typeof APPROVAL_OUTCOMES)[number];

export const APPROVAL_OUTCOMES = [
  "waiting",
  "executed",
  "asked_again",
  "held",
  "unknown",
  "failed",
] as const;

export interface Approved {
  readonly interaction: Interaction;
  readonly outcome: ApprovalOutcome;
  /** Who must still say yes to this question. Empty does not mean that anything ran: see `outcome`. */
  readonly missing: Requirement;
  /** The results of the calls, in order; each `pending` while an approval is missing. */
  readonly answers: readonly CallAnswer[];
}

export type Edited =
  | { readonly edited: true; readonly interaction: Interaction; readonly preview: Preview }
  /** The input is wrong or the review said no to it: the question stays as it was. */
  | { readonly edited: false; readonly text: string };

export type FoundOut =
  | {
      readonly happened: true;
      readonly output?: string;
      /** What the tool would have returned as `data`: from it the tool makes its undo. Left out, the call has none. */
      readonly resultData?: JsonValue;
    }
  /** It did not: call it once more, or leave it. */
  | { readonly happened: false; readonly otherwise: "repeat" | "give_up" };

export type BatchItem =
  | { readonly id: InteractionId; readonly outcome: "approved"; readonly approved: Approved }
  | { readonly id: InteractionId; readonly outcome: "rejected" }
  | {
      readonly id: InteractionId;
      readonly outcome: "refused";
      readonly code: string;
      readonly text: string;
    };

export interface Swept {
  readonly expired: readonly InteractionId[];
  /** Lost calls whose outcome is still not known: they do not expire, people are asked again. */
  readonly askedAgain: readonly InteractionId[];
  readonly escalated: readonly InteractionId[];
}

/** Page after page, to the end. */
export async function allQuestions(
  interactions: Pick<InteractionStore, "list">,
  query: Omit<InteractionQuery, "limit">,
): Promise<readonly Interaction[]> {
  const all: Interaction[] = [];
  for (let { after = 0 } = query; ; ) {
    const page = await interactions.list({ ...query, after, limit: MAX_LIST });
    all.push(...page);
    const last = page.at(-1);
    if (page.length < MAX_LIST || last === undefined) return all;
    after = last.ord;
  }
}

/** Calls off what a session has waiting for people, except lost outcomes; returns what was called off. */
export async function withdrawOpen(
  interactions: Pick<InteractionStore, "list" | "cancel">,
  sessionId: string,
  { reason, by }: { readonly reason: string; readonly by: string },
): Promise<readonly InteractionId[]> {
  const withdrawn: InteractionId[] = [];
  for (const { id, type } of await allQuestions(interactions, { status: "open", sessionId })) {
    if (type === "connection_lost") continue;
    try {
      await interactions.cancel(id, reason, { actor: by });
      withdrawn.push(id);
    } catch (error) {
      // Decided in the meantime, and that stands.
      if (!isSallyportError(error, "already_answered")) throw error;
    }
  }
  return withdrawn;
}

// Who may decide.

/** A person who may decide. */
export interface Person {
  readonly id: string;
  readonly groups?: readonly string[];
  /** Agents and automations that act for this person: what those ask for, this person has asked for. */
  readonly agents?: readonly string[];
}

/**
 * Why this person may not decide a question, as a sentence; undefined if they may. A requester never decides its own request:
 * not the agent, nor who delegated to it, nor whose behalf it acts on, nor whose automation it is. With a list of people,
 * a person who is not on it may not decide at all.
 */
export function whyNot(
  by: string,
  question: Pick<Interaction, "chain" | "assignedTo">,
  people?: readonly Person[],
): string | undefined {
  if (!isName(by) || foldName(by) === "")
    return "Say who decides: a short text without control characters.";
  const person = people?.find(({ id }) => id === by);
  if (people !== undefined && person === undefined) {
    return `${by} is not among the people who may decide. Ask one of them, or have ${by} added.`;
  }
  // Another spelling of a name is the same person: identity providers do not all spell names alike.
  const own = new Set(sameHand(by, people).map(foldName));
  if (question.chain.some((asker) => own.has(foldName(asker)))) {
    return "Another person has to decide: requesters cannot approve their own requests.";
  }
  const { assignedTo } = question;
  if (assignedTo === "" || assignedTo === by || person?.groups?.includes(assignedTo) === true) {
    return undefined;
  }
  return `It was handed to ${assignedTo}. Let them decide, or have it handed to you.`;
}

/** Everybody who is the same hand: a person with their automations, whichever of them speaks, also where one is on the list itself. */
export function sameHand(by: string, people: readonly Person[] = []): readonly string[] {
  const name = foldName(by);
  const hands = people.filter(({ id, agents = [] }) =>
    [id, ...agents].map(foldName).includes(name),
  );
  return [by, ...hands.flatMap(({ id, agents = [] }) => [id, ...agents])];
}

/** Whether this person has already said yes under another name. */
export function hasVoted(
  by: string,
  { votes }: Pick<Interaction, "votes">,
  people?: readonly Person[],
): boolean {
  const own = new Set(sameHand(by, people).map(foldName));
  own.delete(foldName(by));
  return votes.some((vote) => own.has(foldName(vote.by)));
}

/** Whether enough people are left who did not ask for it, as far as names are known. Anybody may be left where none are. */
export function canBeMet(
  requires: Requirement,
  askers: readonly string[],
  people?: readonly Person[],
): boolean {
  const own = new Set(askers.flatMap((name) => sameHand(name, people)).map(foldName));
  const isFree = (name: string) => !own.has(foldName(name));
  const known = people?.map(({ id }) => id);
  return requires.every(({ from = known, count }) => {
    const named = from?.filter((name) => isFree(name) && (known?.includes(name) ?? true));
    return named === undefined || named.length >= count;
  });
}

/** Throws not_allowed. */
export function checkMayDecide(
  by: string,
  question: Interaction,
  people?: readonly Person[],
): void {
  const hint = whyNot(by, question, people);
  if (hint !== undefined) throw new SallyportError("not_allowed", { id: question.id, by, hint });
}

// Questions of an agent: session.ask, and the tool ask_user.

/** Who asks. */
export interface Asker {
  readonly sessionId: string;
  /** The agent, who delegated to it, on whose behalf. */
  readonly chain: readonly string[];
}

/** Asked twice with the same id it is one question: the second caller gets the result of the first. */
export async function openQuestion(
  question: Question,
  { sessionId, chain }: Asker,
  store: InteractionStore,
  defaultMs: number,
): Promise<QuestionAnswer> {
  const { callId, text, choices = [], deadlineMs = defaultMs } = question;
  const { assignedTo, escalation, metadata } = question;
  checkMetadata(metadata);
  const draft: InteractionDraft = {
    type: "ask_user",
    sessionId,
    callId,
    displayText: text,
    hash: questionHash(sessionId, question),
    chain,
    choices,
    deadlineMs,
    ...(assignedTo === undefined ? {} : { assignedTo }),
    ...(escalation === undefined ? {} : { escalation }),
    ...(metadata === undefined ? {} : { metadata }),
  };
  const id = questionId(sessionId, callId);
  try {
    return answerOfQuestion(await store.open(id, draft, { actor: chain[0] ?? "agent" }));
  } catch (error) {
    if (!isSallyportError(error, "already_exists")) throw error;
    const first = await store.get(id);
    if (first.hash === draft.hash) return answerOfQuestion(first);
    const hint = "This id was used for another question. Give every question its own.";
    throw new SallyportError("already_exists", { id, hint });
  }
}

/** What an agent says beside its question. Everybody who opens the inbox reads it. */
export const MOST_METADATA_BYTES = 16 * 1024;

function checkMetadata(metadata: Question["metadata"]): void {
  const bytes = metadata === undefined ? 0 : Buffer.byteLength(JSON.stringify(metadata));
  if (bytes <= MOST_METADATA_BYTES) return;
  const hint = `The metadata of a question has at most ${MOST_METADATA_BYTES} bytes.`;
  throw new SallyportError("payload_too_large", { what: "metadata", bytes, hint });
}

/** The same in every process, so that a restarted agent finds the question it had asked. */
export function questionId(sessionId: string, callId: string): string {
  return `q-${sha256Hex(canonicalJson([sessionId, callId])).slice(0, 40)}`;
}

/** Of what is asked: the same id with another content is a mistake. */
export function questionHash(
  sessionId: string,
  { callId, text, choices = [] }: Pick<Question, "callId" | "text" | "choices">,
): string {
  return sha256Hex(canonicalJson({ v: 1, sessionId, callId, text: text.toWellFormed(), choices }));
}

export function answerOfQuestion(asked: Interaction): QuestionAnswer {
  const { id: interactionId, status, outcome, answer, answeredBy: by } = asked;
  if (status === "open") {
    const text = `Not answered yet: it waits for a person as ${interactionId}. Go on with something else, or ask later.`;
    return { answer: "pending", interactionId, text };
  }
  if (outcome === "answered" && answer !== undefined) {
    return { answer: "answered", interactionId, value: answer, by };
  }
  const text = `No answer: ${asked.reason || "it was called off."} Do not take silence for a yes.`;
  return { answer: "unanswered", interactionId, outcome, text };
}

/** Throws invalid_input when the answer is not one of the choices. */
export function checkAnswer({ id, choices }: Interaction, answer: JsonValue): void {
  if (choices.length === 0) return;
  if (typeof answer === "string" && choices.includes(answer)) return;
  const hint = `Answer with one of: ${choices.join(", ")}.`;
  throw new SallyportError("invalid_input", { what: "answer", id, hint });
}

export const ASK_USER = "ask_user";

/**
 * For models that can only call tools: register it, and a call of it is the same question as `session.ask`, in the same
 * inbox. It is a pause of the flow and no action of its own, so it never reaches the executor.
 *
 *     const gate = createGate({ tools: [askUserTool()] });
 */
export function askUserTool(): Tool {
  return defineTool({
    name: ASK_USER,
    description:
      "Asks a person and waits for the answer, which may take long. Use it when you cannot go on without knowing something. It does not approve anything.",
    input: {
      type: "object",
      properties: {
        question: { type: "string", minLength: 1, maxLength: 4_000 },
        choices: { type: "array", items: { type: "string", minLength: 1 }, maxItems: 20 },
      },
      required: ["question"],
      additionalProperties: false,
    },
    safety: { effect: "read" },
    permissionClass: "readonly",
    execute() {
      throw new Error("A question is asked through the session, not executed.");
    },
  });
}

/** What a checked call of the tool asks. */
export function questionIn(input: JsonValue): { text: string; choices: readonly string[] } {
  const { question, choices } = input as JsonObject;
  return {
    text: String(question),
    choices: Array.isArray(choices) ? choices.map(String) : [],
  };
}

interface WordedCall {
  readonly tool: string;
  readonly input: JsonValue;
}

/** Written without the model: what is asked is what would run. */
export function textOf(agent: string, calls: readonly WordedCall[]): string {
  const names = calls.map(({ tool }) => tool);
  if (calls.length === 1) return `${agent} asks to run ${names[0]}.`;
  return `${agent} asks to run ${calls.length} calls as a whole: ${names.join(", ")}.`;
}

export function pendingTool(calls: readonly WordedCall[], { dryRun }: Preview): PendingTool {
  const [first] = calls;
  const single = calls.length === 1 && first !== undefined;
  const looks = Array.isArray(dryRun) ? dryRun : [dryRun];
  return {
    tool_name: single ? first.tool : "bundle",
    args_json: canonicalJson(
      single ? first.input : calls.map(({ tool, input }) => ({ tool, input })),
    ),
    summary: looks.map(inWords).join("\n"),
  };
}

/** The tool's own sentence, otherwise the summary of the dry run, or all of it when it has none. */
function inWords(look: JsonValue): string {
  const said = isObject(look) ? look : {};
  const presented = said["presented"] ?? null;
  const title = isObject(presented) ? presented["title"] : undefined;
  if (typeof title === "string") return title;
  return typeof said["summary"] === "string" ? said["summary"].toWellFormed() : canonicalJson(look);
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

interface AskedAbout {
  readonly tools: readonly Tool[];
  readonly classes: readonly SafetyClass[];
  /** One of the dry runs could not show its effect. */
  readonly isBlind: boolean;
  /** What the policies said. */
  readonly because: readonly string[];
}

/** Why a person is asked, in sentences for that person: what the policies said, and what the tools declare. */
export function askedBecause({ tools, classes, isBlind, because }: AskedAbout): string[] {
  const affects = new Set(tools.flatMap((tool) => capabilityOf(tool).affects));
  const isEachTime = tools.some((tool) => capabilityOf(tool).checkpoint);
  const said = [
    ...because.map((text) => forPeople(text)),
    ...(isEachTime ? ["The tool asks for a person each time."] : []),
    ...(affects.size > 0 ? [`It changes ${[...affects].join(", ")}.`] : []),
    ...(classes.includes("irreversible") ? ["It is irreversible."] : []),
    ...(isBlind ? ["Its effect cannot be shown before it runs."] : []),
    // What the policies said is more exact.
    ...(because.length === 0 ? ["No rule lets this agent do it alone."] : []),
  ];
  return [...new Set(said.map((text) => text.toWellFormed()))];
}
