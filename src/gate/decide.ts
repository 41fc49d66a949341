// Step "decide": people answer, edit, reassign or reject. Before it: show has opened the confirmation. After it: run, with the
// last yes that is required.

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
import { decodeProposal, editorOf } from "./action.ts";
import { pending, recordedFrom } from "./answers.ts";
import { checkAnswer } from "./ask.ts";
import { checkYes, countDecided, DECOY_TEXT } from "./attention.ts";
import type { GateContext } from "./context.ts";
import { allowAlways } from "./guards.ts";
import {
  type ApprovalOutcome,
  type Approved,
  allQuestions,
  type BatchItem,
  type Inbox,
  type PersonsAnswer,
  type PersonsYes,
} from "./inbox.ts";
import { settleLost } from "./lost.ts";
import { pastFirstWrite } from "./propose.ts";
import { consultGuard } from "./review.ts";
import { runDecision } from "./run.ts";
import { classesOf, reviewOf } from "./show.ts";
import { editCalls } from "./supersede.ts";
import { sweep } from "./upkeep.ts";
import { checkMayDecide, hasVoted } from "./who-may.ts";

const YES_STORED =
  "Your yes is stored. If it was the last one that is needed, the next recovery carries the decision out. Look at the decision to see what came of it.";
const NO_STORED = "Your no is stored: nothing of it will run.";

/** The inbox of a gate. */
export function inboxOf(context: GateContext): Inbox {
  const { store, observer, at } = context;
  const { interactions, decisions } = store;

  /** Checks that this person may decide the interaction, first of all, and that it is of this type. */
  function mayBy(by: string, type?: InteractionType, what?: "yes"): Look {
    return (question) => {
      // A person who changed a call cannot approve it, but may change it again or say no.
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
        policyVersion: context.policy.version,
      },
    };
  }

  async function approve(id: InteractionId, yes: PersonsYes): Promise<Approved> {
    at("S4.before");
    const factor = yes.factor === undefined ? {} : { factor: yes.factor };
    const given = { ...verdictOf(yes, true), ...factor };
    await checkYes(context, yes.by);
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
    if (await countDecided(context, interaction.decisionId, yes.by, "approved")) {
      return decoyMissed(interaction);
    }
    if (interaction.status === "open") {
      const missing = missingFactors(interaction.requires, interaction.votes);
      const answers = (await toolsOf(interaction)).map(() => pending(interaction.id));
      return { interaction, outcome: "waiting", missing, answers };
    }
    const answers = await runDecision(context, interaction.decisionId, yes.hash);
    return { interaction, outcome: outcomeOf(interaction, answers), missing: [], answers };
  }

  /** A person who said yes before gets the result of that: the answer to the first yes may have been lost. */
  async function toldWhatCame(id: InteractionId, by: string, error: unknown): Promise<never> {
    if (!(error instanceof SallyportError) || error.code !== "already_answered") throw error;
    const question = await interactions.get(id);
    if (!question.votes.some((vote) => foldName(vote.by) === foldName(by))) throw error;
    const { length } = await toolsOf(question);
    const answers = await recordedFrom(context, question.decisionId, 0, length);
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

  /** Reported immediately, so that the person learns from it. */
  async function decoyMissed(interaction: Interaction): Promise<Approved> {
    const { decisionId } = interaction;
    if (interaction.status !== "open") {
      await decisions.markFailed(decisionId, DECOY_TEXT, { actor: "attention" });
    }
    const answers = [{ answer: "failed", text: DECOY_TEXT }] as const;
    return { interaction, outcome: "failed", missing: [], answers };
  }

  /** The guard of every other move. Authorization and a late answer are reported before it is asked. */
  async function checkGuard(id: InteractionId, { hash, verdict }: GivenVerdict): Promise<void> {
    if (context.guard === allowAlways) return;
    const question = await interactions.get(id);
    mayBy(verdict.validator, "confirm", "yes")(question);
    if (question.status !== "open" || question.hash !== hash) return;
    const decision = await decisions.get(question.decisionId);
    await consultGuard(context, { ...decision, bizVerdict: { ...verdict } }, "approved");
  }

  async function reject(id: InteractionId, no: PersonsAnswer): Promise<Interaction> {
    at("S4.before");
    const closed = await interactions.reject(id, verdictOf(no, false), mayBy(no.by, "confirm"));
    at("S4.after");
    return pastFirstWrite(id, NO_STORED, async () => {
      if (await countDecided(context, closed.decisionId, no.by, "rejected")) return closed;
      for (const [step, tool] of (await toolsOf(closed)).entries()) {
        const { sessionId } = closed;
        observer.refused({ callId: `${id}.${step}`, tool, sessionId, outcome: "denied" });
      }
      return closed;
    });
  }

  /** A decision that others staged holds no calls; a stored no must not fail because of that. */
  async function toolsOf({ decisionId }: Interaction): Promise<readonly string[]> {
    const decision = await decisions.get(decisionId);
    try {
      return decodeProposal(decision).calls.map(({ tool }) => tool);
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
      // A person who changes a decoy has looked at it; proposed again it would be a real call.
      if (await store.reviewers.isDecoy(question.decisionId)) {
        await reject(id, { ...edit, reason: "changed by a reviewer" });
        return { edited: false, text: DECOY_TEXT };
      }
      return editCalls(context, question, edit);
    },
    async approveAll(list, how) {
      await checkBatch(context, list, how.veto ?? [], how.by);
      const done: BatchItem[] = [];
      for (const item of list) done.push(await oneOfBatch(item, how));
      return done;
    },
    async settle(id, found): Promise<CallAnswer> {
      return settleLost(context, await asked(id, found.by, "connection_lost"), found);
    },
    async handOver(id, { by, to, reason = "" }) {
      return interactions.handOver(id, to, reason, { actor: by }, (question) => {
        // The assignee may reassign it, and so may anyone who could decide it if it were not assigned.
        checkMayDecide(by, { ...question, assignedTo: "" }, context.people);
        // A group may be named; a requester may not, because that would keep it from those who may decide.
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

/** The interaction as if this person had not changed its calls; the last entry of a name is the editor's. */
function withoutEditor(question: Interaction, by: string): Interaction {
  const { chain } = question;
  const editor = editorOf(question);
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

/** A yes to many is read less closely: only for calls of one tool that can be undone (T2). */
async function checkBatch(
  context: GateContext,
  list: readonly { readonly id: InteractionId }[],
  veto: readonly InteractionId[],
  by: string,
): Promise<void> {
  const tools = new Set<string>();
  const final: InteractionId[] = [];
  let mayBatch = true;
  for (const { id } of list.filter((item) => !veto.includes(item.id))) {
    const facts = await factsOf(context, id);
    // One that is missing or of another type is refused by itself, with its own reason.
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

async function factsOf(context: GateContext, id: InteractionId) {
  const question = await context.store.interactions.peek(id);
  if (question === undefined || question.type !== "confirm") return undefined;
  const decision = await context.store.decisions.get(question.decisionId);
  try {
    const { calls } = decodeProposal(decision);
    const shown = (await context.store.interactions.shown(decision.id))?.preview.dryRun;
    const dryRuns = Array.isArray(shown)
      ? (shown as readonly JsonValue[])
      : calls.map(() => NOT_SHOWN);
    const review = reviewOf(context, calls, dryRuns);
    return {
      tools: calls.map(({ tool }) => tool),
      isFinal: classesOf(calls, context.registry, dryRuns).includes("irreversible"),
      mayBatch: review.possible && review.review.mayBatch === true,
    };
  } catch (error) {
    if (!isSallyportError(error, "damaged_record")) throw error;
    // Staged by others: what it does is not known here.
    return { tools: [decision.diff.sourceTool], isFinal: true, mayBatch: false };
  }
}
