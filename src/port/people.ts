import { checkAnswer } from "../interactions/ask.ts";
import { sweep } from "../interactions/sweep.ts";
import { checkMayDecide, hasVoted } from "../interactions/who-may.ts";
import type { CallAnswer } from "../model/call.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Interaction, InteractionId, InteractionType } from "../model/interaction.ts";
import { foldName } from "../model/names.ts";
import { missingFactors } from "../model/requirement.ts";
import type { GivenVerdict, Look } from "../store/interactions.ts";
import { oneLine } from "../util/error-text.ts";
import { decodeAction } from "./action.ts";
import { allQuestions } from "./all-questions.ts";
import { DECOY_TEXT } from "./attention.ts";
import { checkBatch } from "./check-batch.ts";
import { runDecision } from "./decide-calls.ts";
import { editCalls } from "./edit-calls.ts";
import type {
  ApprovalOutcome,
  Approved,
  BatchItem,
  Inbox,
  PersonsAnswer,
  PersonsYes,
} from "./inbox.ts";
import { pastFirstWrite } from "./past-first-write.ts";
import { pending } from "./results.ts";
import type { Rooms } from "./rooms.ts";
import { settleLost } from "./settle-lost.ts";
import { recordedFrom } from "./take-back-all.ts";

const YES_STORED =
  "Your yes is stored. If it was the last one that is needed, the next recovery carries the decision out. Look at the decision to see what came of it.";
const NO_STORED = "Your no is stored: nothing of it will run.";

/** What people do, over the same rooms that agents walk through. */
export function inboxOf(rooms: Rooms): Inbox {
  const { store, observer, at } = rooms;
  const { interactions, approvals, decisions } = store;

  /** Whether this person may decide the question and it is of this kind. Who may not is told so before anything else. */
  function mayBy(by: string, type?: InteractionType, what?: "yes"): Look {
    return (question) => {
      // Whoever changed a call cannot approve it, but may still change it again or say no.
      checkMayDecide(by, what === "yes" ? question : withoutEditor(question, by), rooms.people);
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
        policyVersion: rooms.policyVersion,
      },
    };
  }

  async function approve(id: InteractionId, yes: PersonsYes): Promise<Approved> {
    at("S4.before");
    const factor = yes.factor === undefined ? {} : { factor: yes.factor };
    const given = { ...verdictOf(yes, true), ...factor };
    await rooms.attention()?.checkYes(yes.by);
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
    if (await rooms.attention()?.decided(interaction.decisionId, yes.by, "approved")) {
      return decoyMissed(interaction);
    }
    if (interaction.status === "open") {
      const missing = missingFactors(interaction.requires, interaction.votes);
      const answers = (await toolsOf(interaction)).map(() => pending(interaction.id));
      return { interaction, outcome: "waiting", missing, answers };
    }
    const answers = await runDecision(interaction.decisionId, yes.hash, rooms.deciding);
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
    if (!hasVoted(by, question, rooms.people)) return;
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
    if (rooms.consult === undefined) return;
    const question = await interactions.get(id);
    mayBy(verdict.validator, "confirm", "yes")(question);
    if (question.status !== "open" || question.hash !== hash) return;
    const decision = await decisions.get(question.decisionId);
    await rooms.consult({ ...decision, bizVerdict: { ...verdict } }, "approved");
  }

  async function reject(id: InteractionId, no: PersonsAnswer): Promise<Interaction> {
    at("S4.before");
    const closed = await interactions.reject(id, verdictOf(no, false), mayBy(no.by, "confirm"));
    at("S4.after");
    return pastFirstWrite(id, NO_STORED, async () => {
      if (await rooms.attention()?.decided(closed.decisionId, no.by, "rejected")) return closed;
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
    async shown(id) {
      const { decisionId } = await interactions.get(id);
      return decisionId === "" ? undefined : (await approvals.shown(decisionId))?.preview;
    },
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
      return editCalls(question, edit, rooms);
    },
    async approveAll(list, how) {
      await checkBatch(list, how.veto ?? [], how.by, rooms);
      const done: BatchItem[] = [];
      for (const item of list) done.push(await oneOfBatch(item, how));
      return done;
    },
    async settle(id, found): Promise<CallAnswer> {
      return settleLost(await asked(id, found.by, "connection_lost"), found, rooms);
    },
    async handOver(id, { by, to, reason = "" }) {
      return interactions.handOver(id, to, reason, { actor: by }, (question) => {
        // Whoever it was handed to may hand it on, and so may anybody who could decide it otherwise.
        checkMayDecide(by, { ...question, assignedTo: "" }, rooms.people);
        // A group is nobody in particular; somebody who asked would only keep it from those who may decide.
        const known =
          rooms.people?.filter(({ id: person }) => foldName(person) === foldName(to)) ?? [];
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
