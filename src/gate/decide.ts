// Step "decide": people answer, edit, reassign or reject, and report what became of a call whose outcome was lost. Before it:
// show has opened the confirmation. After it: run, with the last yes that is required.

import { isSallyportError, SallyportError } from "../model/errors.ts";
import {
  type Interaction,
  type InteractionId,
  type InteractionType,
  missingFactors,
  whyClosed,
} from "../model/interaction.ts";
import { foldName } from "../model/names.ts";
import type { CallAnswer, Operation } from "../model/operation.ts";
import { asSeen, stillAsked } from "../store/interaction-steps.ts";
import { closingStep, type GivenVerdict, type VersionCheck } from "../store/interactions.ts";
import type { Outcome } from "../store/operations.ts";
import { errorText, oneLine } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import { answerOf, pending, recorded, recordedFrom } from "./answers.ts";
import { repeatOrder } from "./attempt.ts";
import { checkYes, countDecided, DECOY_TEXT } from "./attention.ts";
import type { GateContext } from "./context.ts";
import {
  type ApprovalOutcome,
  type Approved,
  allQuestions,
  type BatchItem,
  checkAnswer,
  checkMayDecide,
  type FoundOut,
  hasVoted,
  type Inbox,
  type PersonsAnswer,
  type PersonsYes,
} from "./inbox.ts";
import { isPermit, settlePermit } from "./permit.ts";
import { pastFirstWrite } from "./propose.ts";
import { carryOn, orderOf } from "./recover.ts";
import { allowAlways, consultGuard } from "./review.ts";
import { type AnsweredRun, type AskedDecision, runDecision, runWithYes } from "./run.ts";
import { type FoundUndo, undoFrom } from "./settle.ts";
import { classesOf, decodeProposal, editorOf, reviewOf } from "./show.ts";
import { editCalls } from "./supersede.ts";
import { sweep } from "./upkeep.ts";

const YES_STORED =
  "Your yes is stored. If it was the last one that is needed, the next recovery carries the decision out. Look at the decision to see what came of it.";
const NO_STORED = "Your no is stored: nothing of it will run.";

/** The inbox of a gate. */
export function inboxOf(context: GateContext): Inbox {
  const { store, observer, at, attention } = context;
  const { interactions, decisions } = store;

  /** Checks that this person may decide the interaction, first of all, and that it is of this type. */
  function mayBy(by: string, type?: InteractionType, what?: "yes"): VersionCheck {
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
    if (attention !== undefined) await checkYes(context, attention, yes.by);
    const now = await askedNow(id);
    await checkGuard(id, now, given);
    const may = mayBy(yes.by, "confirm", "yes");
    const look: VersionCheck = (question) => {
      may(question);
      checkVotesOnce(yes.by, question);
    };
    const run = await withYes(now, given, look);
    if (run !== undefined) {
      const { interaction, answers } = run;
      return { interaction, outcome: outcomeOf(interaction, answers), missing: [], answers };
    }
    const interaction = await interactions
      .approve(id, given, look)
      .catch((error) => toldWhatCame(id, yes.by, error));
    at("S4.after");
    return pastFirstWrite(id, YES_STORED, () => afterYes(interaction, yes));
  }

  /** The confirmation with everything around it, in one read; undefined for what is none, or cannot be read. */
  async function askedNow(id: InteractionId): Promise<AskedDecision | undefined> {
    // A confirmation has the id of its decision.
    const [found, decision, isStopped] = await Promise.all([
      interactions.withShown(id).catch(undefinedIfUnreadable),
      decisions.get(id).catch(undefinedIfUnreadable),
      store.killSwitch.isStopped(),
    ]);
    if (found === undefined || decision === undefined) return undefined;
    const [question, shown] = found;
    return { question, shown, decision, isStopped };
  }

  /** Where decisions are counted, a decoy must be told from a call before anything of it runs. */
  async function withYes(
    now: AskedDecision | undefined,
    given: GivenVerdict,
    look: VersionCheck,
  ): Promise<AnsweredRun | undefined> {
    if (now === undefined || attention !== undefined) return undefined;
    look(now.question);
    const parts = interactions.completing(now.question, given);
    return parts && runWithYes(context, now, parts, given.hash);
  }

  async function isDecoy(id: string, by: string, what: "approved" | "rejected") {
    return attention !== undefined && countDecided(context, attention, { id, by, what });
  }

  async function afterYes(interaction: Interaction, yes: PersonsYes): Promise<Approved> {
    if (await isDecoy(interaction.decisionId, yes.by, "approved")) {
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
    const hint = "You have said yes to it under another name. Another person has to.";
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
  async function checkGuard(
    id: InteractionId,
    now: AskedDecision | undefined,
    { hash, verdict }: GivenVerdict,
  ): Promise<void> {
    if (context.guard === allowAlways) return;
    const question = now?.question ?? (await interactions.get(id));
    mayBy(verdict.validator, "confirm", "yes")(question);
    if (question.status !== "open" || question.hash !== hash) return;
    const decision = now?.decision ?? (await decisions.get(question.decisionId));
    await consultGuard(context, { ...decision, bizVerdict: { ...verdict } }, "approved");
  }

  async function reject(id: InteractionId, no: PersonsAnswer): Promise<Interaction> {
    at("S4.before");
    const closed = await interactions.reject(id, verdictOf(no, false), mayBy(no.by, "confirm"));
    at("S4.after");
    return pastFirstWrite(id, NO_STORED, async () => {
      if (await isDecoy(closed.decisionId, no.by, "rejected")) return closed;
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

  /** What is closed here no longer counts against the agent that asked. */
  function uncounted(interaction: Interaction): Interaction {
    if (interaction.status !== "open") context.quota.closed(interaction.id);
    return interaction;
  }

  return {
    async approve(id, yes) {
      const approved = await approve(id, yes);
      uncounted(approved.interaction);
      return approved;
    },
    reject: async (id, no) => uncounted(await reject(id, no)),
    list: ({ status = "open", limit, ...narrow } = {}) =>
      limit === undefined
        ? allQuestions(interactions, { ...narrow, status })
        : interactions.list({ ...narrow, status, limit }),
    get: (id) => interactions.get(id),
    shown: (id) => interactions.shown(id),
    async answer(id, given) {
      const may = mayBy(given.by, "ask_user");
      const answered = await interactions.answer(id, given, (question) => {
        may(question);
        checkAnswer(question, given.answer);
      });
      return uncounted(answered);
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
      return uncounted(await interactions.cancel(id, reason, { actor: by }, mayBy(by)));
    },
    sweep: () => sweep(interactions),
  };
}

/** The write that needs it says what is wrong with it. */
function undefinedIfUnreadable(error: unknown): undefined {
  if (isSallyportError(error, "not_found") || isSallyportError(error, "damaged_record")) return;
  throw error;
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

// What a person found out about a call whose outcome was lost.

/**
 * A person found out what became of a call. The answer and the outcome are one transaction, so that nothing is repeated on
 * an answer that was not recorded; the decision behind it continues from there.
 */
export async function settleLost(
  context: GateContext,
  question: Interaction,
  found: PersonsAnswer & FoundOut,
): Promise<CallAnswer> {
  const { store } = context;
  const { id, operationId } = question;
  const { by, hash, reason = "" } = found;
  const operation = await store.operations.get(operationId);
  const answer = found.happened ? "happened" : found.otherwise;
  const closing = closingStep(
    id,
    { outcome: "answered", by, reason, answer },
    // Not if it was reassigned meanwhile. What was found out counts however late it is.
    { ...asSeen(question, hash), ...stillAsked(question) },
  );
  if (isPermit(operation)) {
    if (found.happened && found.resultData !== undefined) throw noUndo(operation);
    const settled = await settlePermit(context, operation, found, closing);
    if (settled === undefined) throw await overtaken(context, question);
    return settled;
  }
  if (isAsked(question) && !found.happened && found.otherwise === "repeat") {
    // Lost again, it is asked about again, and the requesters still may not answer.
    const chain = operation.undoOf === "" ? question.chain : operation.chain;
    const order = { ...(await repeatable(context, question)), chain, actor: by };
    const executed = await repeatOrder(context, order, operation, [closing]);
    if (executed.status === "overtaken") throw await overtaken(context, question);
    const done = answerOf(executed);
    if (done.answer === "unknown") return done;
    return pastFirstWrite(id, SETTLED, async () => {
      await continueDecision(context, operation.decisionId);
      return done;
    });
  }
  const { fence, undoOf } = operation;
  const outcome = foundOutcome(found, by, await foundUndo(context, operation, found));
  const settled = await store.operations.settle(operationId, {
    fence,
    outcome,
    actor: by,
    along: [closing],
    // An undo that happened has undone its operation, regardless of who reports it.
    ...(found.happened && undoOf !== "" ? { tookBack: undoOf } : {}),
  });
  if (!settled.settled) throw await overtaken(context, question);
  return pastFirstWrite(id, SETTLED, async () => {
    await continueDecision(context, operation.decisionId);
    return recorded(await store.operations.get(operationId));
  });
}

const SETTLED =
  "What you found out is stored. The next recovery continues with the decision behind it.";

/** Undefined when the person gave nothing to make one from. */
async function foundUndo(
  context: GateContext,
  operation: Operation,
  found: FoundOut,
): Promise<FoundUndo | undefined> {
  if (!found.happened || found.resultData === undefined) return undefined;
  const made = operation.undoOf === "" ? await make(found.resultData) : "Nothing undoes an undo.";
  if (typeof made !== "string") return made;
  const hint = `No undo can be made from it: ${made} Leave it out to say only that it happened.`;
  throw new SallyportError("invalid_input", { what: "resultData", id: operation.id, hint });

  async function make(data: JsonValue): Promise<FoundUndo | string> {
    try {
      return await undoFrom(context, await orderOf(context, operation), operation, data);
    } catch (error) {
      if (isSallyportError(error)) throw error;
      return `${errorText(error)}.`;
    }
  }
}

function noUndo({ id, executor }: Operation): SallyportError {
  const hint = `${executor} carries it out, so no undo can be made here. Leave it out to say only that it happened.`;
  return new SallyportError("invalid_input", { what: "resultData", id, hint });
}

/** Older versions let these questions expire; those can still be answered. */
function isAsked({ status, outcome }: Interaction): boolean {
  return status === "open" || outcome === "expired";
}

/** Where its tool is missing, or the gate refuses it by now, it cannot be called again; the finding can still be reported. */
async function repeatable(context: GateContext, { id, operationId }: Interaction) {
  try {
    return await orderOf(context, await context.store.operations.get(operationId));
  } catch (error) {
    if (isSallyportError(error)) throw error;
    const hint = `It cannot be repeated here: ${errorText(error)}. Say whether it happened.`;
    throw new SallyportError("illegal_transition", { id, hint }, error);
  }
}

/** A person reports what the tool could not. */
function foundOutcome(found: FoundOut, by: string, made: FoundUndo | undefined): Outcome {
  if (!found.happened) {
    const error = `It did not happen: ${by} looked.`;
    return { status: "failed", error, output: error };
  }
  return {
    status: "success",
    output: found.output ?? `It happened: ${by} looked.`,
    truncated: false,
    storedPath: "",
    undo: made?.undo,
    stateVersion: made?.stateVersion ?? "",
  };
}

async function continueDecision(context: GateContext, decisionId: string): Promise<void> {
  if (decisionId === "") return;
  const decision = await context.store.decisions.get(decisionId);
  if (decision.state === "approved") await carryOn(context, decision);
}

/** The question as it is now says who was first, or that another hash was seen. */
async function overtaken({ store }: GateContext, { id }: Interaction): Promise<unknown> {
  const now = await store.interactions.get(id);
  if (now.status !== "open") return whyClosed(now);
  const hint = "Look at it again: what you saw is not what is stored, or everything is stopped.";
  return new SallyportError("approval_void", { id, hint });
}
