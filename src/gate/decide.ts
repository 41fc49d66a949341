import type { CallAnswer } from "../model/call.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import {
  type Interaction,
  type InteractionId,
  type InteractionType,
  missingFactors,
} from "../model/interaction.ts";
import { foldName } from "../model/names.ts";
import type { GivenVerdict, Look } from "../store/interactions.ts";
import { oneLine } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import { decodeAction } from "./action.ts";
import { pending } from "./answers.ts";
import { checkAnswer } from "./ask.ts";
import { DECOY_TEXT } from "./attention.ts";
import type { GateContext } from "./context.ts";
import {
  type ApprovalOutcome,
  type Approved,
  allQuestions,
  type BatchItem,
  type Inbox,
  type PersonsAnswer,
  type PersonsYes,
} from "./inbox.ts";
import { pastFirstWrite, reviewOf } from "./propose.ts";
import { runDecision } from "./run.ts";
import { settleLost } from "./settle.ts";
import { classesOf } from "./show.ts";
import { editCalls } from "./supersede.ts";
import { recordedFrom } from "./undo-bundle.ts";
import { sweep } from "./upkeep.ts";
import { checkMayDecide, hasVoted } from "./who-may.ts";

const YES_STORED =
  "Your yes is stored. If it was the last one that is needed, the next recovery carries the decision out. Look at the decision to see what came of it.";
const NO_STORED = "Your no is stored: nothing of it will run.";

/** What people do, over the same rooms that agents walk through. */
export function inboxOf(context: GateContext): Inbox {
  const { store, observer, at } = context;
  const { interactions, decisions } = store;

  /** Whether this person may decide the question and it is of this kind. Who may not is told so before anything else. */
  function mayBy(by: string, type?: InteractionType, what?: "yes"): Look {
    return (question) => {
      // Whoever changed a call cannot approve it, but may still change it again or say no.
      checkMayDecide(by, what === "yes" ? question : withoutEditor(question, by), context.people);
      if (type === undefined || question.type === type) return;
      const hint = `It is a ${question.type}; answer it as such.`;
      throw new SallyportError("illegal_transition", {
        id: question.id,
        type: question.type,
        hint,
      });
    };
  }

  async function asked(id: InteractionId, by: string, type: InteractionType): Promise<Interaction> {
    const question = await interactions.get(id);
    mayBy(by, type)(question);
    return question;
  }

  function verdictOf({ hash, by, reason = "" }: PersonsAnswer, approved: boolean): GivenVerdict {
    return {
      hash,
      by,
      verdict: {
        approved,
        score: approved ? 1 : 0,
        severity: approved ? "" : "block",
        reason,
        validator: by,
        policyVersion: context.policyVersion,
      },
    };
  }

  async function approve(id: InteractionId, yes: PersonsYes): Promise<Approved> {
    at("S4.before");
    const factor = yes.factor === undefined ? {} : { factor: yes.factor };
    const given = { ...verdictOf(yes, true), ...factor };
    await context.attention()?.checkYes(yes.by);
    await checkGuard(id, given);
    const may = mayBy(yes.by, "confirm", "yes");
    const look: Look = (question) => {
      may(question);
      checkVotesOnce(yes.by, question);
    };
    const interaction = await interactions
      .approve(id, given, look)
      .catch((error) => toldWhatCame(id, yes.by, error));
    at("S4.after");
    return pastFirstWrite(id, YES_STORED, () => afterYes(interaction, yes));
  }

  async function afterYes(interaction: Interaction, yes: PersonsYes): Promise<Approved> {
    if (await context.attention()?.decided(interaction.decisionId, yes.by, "approved")) {
      return decoyMissed(interaction);
    }
    if (interaction.status === "open") {
      const missing = missingFactors(interaction.requires, interaction.votes);
      const answers = (await toolsOf(interaction)).map(() => pending(interaction.id));
      return { interaction, outcome: "waiting", missing, answers };
    }
    const answers = await runDecision(interaction.decisionId, yes.hash, context.deciding);
    return { interaction, outcome: outcomeOf(interaction, answers), missing: [], answers };
  }

  /** Who said yes before learns what came of it: the answer to that yes may have been lost. */
  async function toldWhatCame(id: InteractionId, by: string, error: unknown): Promise<never> {
    if (!(error instanceof SallyportError) || error.code !== "already_answered") throw error;
    const question = await interactions.get(id);
    if (!question.votes.some((vote) => foldName(vote.by) === foldName(by))) throw error;
    const { length } = await toolsOf(question);
    const answers = await recordedFrom(0, { id: question.decisionId }, length, store);
    const came = answers.map(({ answer, text }) => `${answer}: ${oneLine(text)}`).join(" | ");
    const hint = `You have said yes to it. What came of it: ${came}`;
    throw new SallyportError("already_answered", { ...error.details, hint });
  }

  /** One person under two names is one person. */
  function checkVotesOnce(by: string, question: Interaction): void {
    if (!hasVoted(by, question, context.people)) return;
    const hint = "You have said yes to it under another name. Somebody else has to.";
    throw new SallyportError("not_allowed", { id: question.id, by, hint });
  }

  /** Told at once: nobody learns from a mistake they never hear of. */
  async function decoyMissed(interaction: Interaction): Promise<Approved> {
    const { decisionId } = interaction;
    if (interaction.status !== "open") {
      await decisions.markFailed(decisionId, DECOY_TEXT, { actor: "attention" });
    }
    const answers = [{ answer: "failed", text: DECOY_TEXT }] as const;
    return { interaction, outcome: "failed", missing: [], answers };
  }

  /** The same guard as in front of every other move. Whoever may not decide, or comes too late, is told that instead. */
  async function checkGuard(id: InteractionId, { hash, verdict }: GivenVerdict): Promise<void> {
    if (context.consult === undefined) return;
    const question = await interactions.get(id);
    mayBy(verdict.validator, "confirm", "yes")(question);
    if (question.status !== "open" || question.hash !== hash) return;
    const decision = await decisions.get(question.decisionId);
    await context.consult({ ...decision, bizVerdict: { ...verdict } }, "approved");
  }

  async function reject(id: InteractionId, no: PersonsAnswer): Promise<Interaction> {
    at("S4.before");
    const closed = await interactions.reject(id, verdictOf(no, false), mayBy(no.by, "confirm"));
    at("S4.after");
    return pastFirstWrite(id, NO_STORED, async () => {
      if (await context.attention()?.decided(closed.decisionId, no.by, "rejected")) return closed;
      for (const [step, tool] of (await toolsOf(closed)).entries()) {
        const { sessionId } = closed;
        observer.refused({ callId: `${id}.${step}`, tool, sessionId, outcome: "denied" });
      }
      return closed;
    });
  }

  /** What was staged from outside holds no calls of ours; a stored no must not turn into a throw for that. */
  async function toolsOf({ decisionId }: Interaction): Promise<readonly string[]> {
    const decision = await decisions.get(decisionId);
    try {
      return decodeAction(decision).map(({ tool }) => tool);
    } catch {
      return [decision.diff.sourceTool];
    }
  }

  async function oneOfBatch(
    { id, hash }: { readonly id: InteractionId; readonly hash: string },
    { by, reason = "", veto = [] }: Parameters<Inbox["approveAll"]>[1],
  ): Promise<BatchItem> {
    try {
      if (veto.includes(id)) {
        await reject(id, { hash, by, reason });
        return { id, outcome: "rejected" };
      }
      return { id, outcome: "approved", approved: await approve(id, { hash, by, reason }) };
    } catch (error) {
      if (!(error instanceof SallyportError) || !isSallyportError(error)) throw error;
      return { id, outcome: "refused", code: error.code, text: error.message };
    }
  }

  return {
    approve,
    reject,
    list: ({ status = "open", limit, ...narrow } = {}) =>
      limit === undefined
        ? allQuestions(interactions, { ...narrow, status })
        : interactions.list({ ...narrow, status, limit }),
    get: (id) => interactions.get(id),
    shown: (id) => interactions.shown(id),
    async answer(id, given) {
      const may = mayBy(given.by, "ask_user");
      return interactions.answer(id, given, (question) => {
        may(question);
        checkAnswer(question, given.answer);
      });
    },
    async edit(id, edit) {
      const question = await asked(id, edit.by, "confirm");
      // Whoever changes a known-bad call has looked at it; made anew it would be a real one.
      if (await store.reviewers.isDecoy(question.decisionId)) {
        await reject(id, { ...edit, reason: "changed by a reviewer" });
        return { edited: false, text: DECOY_TEXT };
      }
      return editCalls(question, edit, context);
    },
    async approveAll(list, how) {
      await checkBatch(list, how.veto ?? [], how.by, context);
      const done: BatchItem[] = [];
      for (const item of list) done.push(await oneOfBatch(item, how));
      return done;
    },
    async settle(id, found): Promise<CallAnswer> {
      return settleLost(await asked(id, found.by, "connection_lost"), found, context);
    },
    async handOver(id, { by, to, reason = "" }) {
      return interactions.handOver(id, to, reason, { actor: by }, (question) => {
        // Whoever it was handed to may hand it on, and so may anybody who could decide it otherwise.
        checkMayDecide(by, { ...question, assignedTo: "" }, context.people);
        // A group is nobody in particular; somebody who asked would only keep it from those who may decide.
        const known =
          context.people?.filter(({ id: person }) => foldName(person) === foldName(to)) ?? [];
        checkMayDecide(to, { ...question, assignedTo: "" }, known.length > 0 ? known : undefined);
      });
    },
    async askBack(id, { by, text }) {
      return interactions.remark(id, text, "people", { actor: by }, mayBy(by));
    },
    async cancel(id, { by, reason }) {
      return interactions.cancel(id, reason, { actor: by }, mayBy(by));
    },
    sweep: () => sweep(interactions),
  };
}

/** The question as if this person had not changed its calls; the last entry of a name is the editor's. */
function withoutEditor(question: Interaction, by: string): Interaction {
  const { type, metadata, chain } = question;
  const editor = type === "confirm" ? String(metadata["editedBy"] ?? "") : "";
  if (editor === "" || foldName(editor) !== foldName(by)) return question;
  const place = chain.findLastIndex((name) => foldName(name) === foldName(by));
  return place < 0 ? question : { ...question, chain: chain.toSpliced(place, 1) };
}

function outcomeOf({ decisionId }: Interaction, answers: readonly CallAnswer[]): ApprovalOutcome {
  if (answers.every(({ answer }) => answer === "done")) return "executed";
  if (answers.some(({ answer }) => answer === "failed" || answer === "denied")) return "failed";
  if (answers.some(({ answer }) => answer === "unknown")) return "unknown";
  const isMoved = answers.some((one) => one.answer === "pending" && one.decisionId !== decisionId);
  return isMoved ? "asked_again" : "held";
}

/** One yes for many is a yes that nobody reads closely: only for calls of one tool that can be taken back (T2). */
async function checkBatch(
  list: readonly { readonly id: InteractionId }[],
  veto: readonly InteractionId[],
  by: string,
  context: GateContext,
): Promise<void> {
  const tools = new Set<string>();
  const final: InteractionId[] = [];
  let mayBatch = true;
  for (const { id } of list.filter((item) => !veto.includes(item.id))) {
    const facts = await factsOf(id, context);
    // What is gone or of another kind is refused by itself, with its own reason.
    if (facts === undefined) continue;
    for (const tool of facts.tools) tools.add(tool);
    if (facts.isFinal) final.push(id);
    mayBatch &&= facts.mayBatch;
  }
  if (mayBatch || (tools.size <= 1 && final.length === 0)) return;
  const hint =
    final.length > 0
      ? `What cannot be undone is approved one by one: ${final.slice(0, 5).join(", ")}. Nothing was decided.`
      : `Only calls of one tool are approved together, and these are of ${tools.size}. Nothing was decided.`;
  throw new SallyportError("not_allowed", { by, hint });
}

const NOT_SHOWN = { unavailable: "it was not shown" };

async function factsOf(id: InteractionId, context: GateContext) {
  const question = await context.store.interactions.peek(id);
  if (question === undefined || question.type !== "confirm") return undefined;
  const decision = await context.store.decisions.get(question.decisionId);
  try {
    const calls = decodeAction(decision);
    const shown = (await context.store.interactions.shown(decision.id))?.preview.dryRun;
    const dryRuns = Array.isArray(shown)
      ? (shown as readonly JsonValue[])
      : calls.map(() => NOT_SHOWN);
    const review = reviewOf(decision, context, dryRuns);
    return {
      tools: calls.map(({ tool }) => tool),
      isFinal: classesOf(calls, context.deciding.registry, dryRuns).includes("irreversible"),
      mayBatch: review.possible && review.review.mayBatch === true,
    };
  } catch (error) {
    if (!isSallyportError(error, "damaged_record")) throw error;
    // Staged from outside: nobody here knows what it does.
    return { tools: [decision.diff.sourceTool], isFinal: true, mayBatch: false };
  }
}
