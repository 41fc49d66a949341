import type { CallAnswer } from "../model/call.ts";
import type { Decision, DecisionId } from "../model/decision.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Interaction } from "../model/interaction.ts";
import { INTERACTIONS } from "../model/interaction.ts";
import type { Shown } from "../store/confirmations.ts";
import { failedMove, reviewMove } from "../store/decisions.ts";
import { type Along, NOW } from "../store/engine.ts";
import { closingStep } from "../store/interaction-rows.ts";
import { notBegun } from "../store/left-behind.ts";
import { definitionHash } from "../tools/definition.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import type { JsonValue } from "../util/json.ts";
import {
  askersOf,
  chainOf,
  claimOf,
  decodeAction,
  editorsOf,
  encodeAction,
  messageIdOf,
  ownerOf,
  type PlannedCall,
  plannedPlaces,
} from "./action.ts";
import type { GateContext } from "./context.ts";
import type { Edited, PersonsAnswer } from "./inbox.ts";
import { judgeCall } from "./judge.ts";
import { propose, reviewOf } from "./propose.ts";
import { looksAt } from "./show.ts";
import { canBeMet } from "./who-may.ts";

type Edit = PersonsAnswer & { readonly inputs: Readonly<Record<number, JsonValue>> };

/**
 * A person changes what an agent asked for. The edited calls go the whole way again: schema, gate, both reviews, preview; the
 * new question takes the place of the old one in one transaction. What the agent asked, what the person made of it and what
 * was executed stay three facts: two decisions and an operation.
 */
export async function editCalls(
  question: Interaction,
  edit: Edit,
  context: GateContext,
): Promise<Edited> {
  const { decisionId, sessionId } = question;
  // Looked at again where it is written; here so that who comes too late, or saw something else, leaves nothing behind.
  if (question.status !== "open" || question.hash !== edit.hash) throw changedMeanwhile(question);
  const decision = await context.store.decisions.get(decisionId);
  const original = decodeAction(decision);
  const places = original.map((_, place) => String(place));
  const strange = Object.keys(edit.inputs).find((place) => !places.includes(place));
  if (strange !== undefined || Object.keys(edit.inputs).length === 0) {
    const hint = `Name the calls to change by their place, from 0 to ${original.length - 1}.`;
    throw new SallyportError("invalid_input", { what: "inputs", hint });
  }
  const chain = chainOf(decision);
  const claim = claimOf(decision);
  const calls: PlannedCall[] = [];
  for (const [step, call] of original.entries()) {
    const input = Object.hasOwn(edit.inputs, step) ? (edit.inputs[step] as JsonValue) : call.input;
    const { workingDirectory } = call;
    const caller = { tenant: context.store.tenant, sessionId, chain, workingDirectory };
    const judged = await judgeCall({ ...call, input }, caller, context.judging, "approved");
    if (judged.verdict === "deny" || judged.verdict === "failed") {
      return { edited: false, text: judged.text };
    }
    const definition = definitionHash(judged.tool);
    const { places: _, ...rest } = call;
    const changed = { tool: judged.tool.name, definition, input: judged.input };
    calls.push({ ...rest, ...changed, ...plannedPlaces(judged.places) });
  }
  const changed = { ...decision, diff: { ...decision.diff, raw: encodeAction(calls) } };
  const { dryRun } = await looksAt(changed, context.deciding);
  const review = reviewOf(changed, context, dryRun);
  const mayApprove = review.possible && review.review.editorMayApprove === true;
  const editors = [...new Set([...editorsOf(decision), ...(mayApprove ? [] : [edit.by])])];
  const askers = [...askersOf(decision), ...editors];
  if (review.possible && !canBeMet(review.review.requires, askers, context.people)) {
    const text =
      "Not changed: whoever changes a call cannot approve it, and nobody else could approve this one. Say no with a reason, or hand it to somebody who does not have to approve it.";
    return { edited: false, text };
  }
  const proposed = await propose(
    {
      calls,
      keys: [],
      sessionId,
      chain,
      owner: ownerOf(decision),
      messageId: messageIdOf(decision),
      ...(claim === undefined ? {} : { claim }),
      editors,
      facts: { editedFrom: decisionId, editedBy: edit.by },
      assignedTo: question.assignedTo,
      along: (id) => replaced(question, id, edit),
    },
    context,
  ).catch((error: unknown) => {
    throw answeredMeanwhile(error, question);
  });
  if (!proposed.proposed) return { edited: false, text: proposed.reason };
  return { edited: true, interaction: proposed.interaction, preview: proposed.preview };
}

/** The old question, closed with a pointer to the new one, and its decision with it: both only if nobody was faster. */
function replaced({ id, decisionId, assignedTo }: Interaction, successor: DecisionId, edit: Edit) {
  const { by, hash } = edit;
  const reason = edit.reason || `${by} changed the input; see decision ${successor}.`;
  const how = { outcome: "superseded", by, reason, supersededBy: successor } as const;
  const verdict = {
    approved: false,
    score: 0,
    severity: "",
    reason,
    validator: by,
    policyVersion: "",
  } as const;
  return [
    // Handed to somebody else since we looked: then it is theirs.
    closingStep(id, how, { hash, due_at: { atLeast: NOW }, assigned_to: assignedTo }),
    reviewMove("business", decisionId, verdict),
  ];
}

function answeredMeanwhile(error: unknown, question: Interaction): unknown {
  if (!isSallyportError(error, "concurrent_modification")) return error;
  return changedMeanwhile(question, error);
}

function changedMeanwhile({ id }: Interaction, cause?: unknown): SallyportError {
  const hint =
    "It was answered while you edited it, or what you saw is not what is stored. Look at it again.";
  return new SallyportError("approval_void", { id, hint }, cause);
}

/**
 * What was approved is no longer what would run: the world moved, or the tool was changed by a deploy. Nothing runs and
 * nothing is lost; the same calls are asked about anew, with the difference, and the old decision points to the new one.
 * Undefined when somebody has begun it, or closed it, in the meantime: then nobody is asked again.
 */
export async function goBack(
  decision: Decision,
  difference: string,
  context: GateContext,
): Promise<CallAnswer | undefined> {
  const { id, sessionId } = decision;
  const claim = claimOf(decision);
  const reason = `Not executed: ${difference}`;
  const calls = decodeAction(decision);
  const gone = calls.find(({ tool }) => context.deciding.registry.get(tool) === undefined);
  if (gone !== undefined) {
    // Nothing to ask about here. Where the tool is, the decision can still be carried out.
    return { answer: "failed", text: `${reason} A process that has "${gone.tool}" can go on.` };
  }
  const judged = await judgedAnew(decision, calls, context);
  if ("text" in judged) return giveUp(id, `${reason} ${judged.text}`, context);
  const proposed = await propose(
    {
      calls: judged.calls,
      keys: [],
      sessionId,
      chain: chainOf(decision),
      owner: ownerOf(decision),
      messageId: messageIdOf(decision),
      ...(claim === undefined ? {} : { claim }),
      editors: editorsOf(decision),
      facts: { cameBackFrom: id, difference },
      along: (successor) => [
        failedMove(id, `${reason} It went back to review as decision ${successor}.`, "executor"),
        pointer(id, successor),
        { step: notBegun(`${id}.0`) },
      ],
    },
    context,
  ).catch(begunMeanwhile);
  if (proposed === undefined) return undefined;
  if (!proposed.proposed) {
    const text = `${reason} Looked at anew, the review said no: ${proposed.reason}`;
    return giveUp(id, text, context);
  }
  const { interaction } = proposed;
  const text = `${reason} It went back to review as decision ${interaction.id}. Go on with something else, or ask later.`;
  return { answer: "pending", text, decisionId: interaction.id, interactionId: interaction.id };
}

/** With the tools and the places of now: those are what the next reviewer is asked about. The gate's no stays a no. */
async function judgedAnew(
  decision: Decision,
  planned: readonly PlannedCall[],
  { judging, store, deciding }: GateContext,
): Promise<{ readonly calls: readonly PlannedCall[] } | { readonly text: string }> {
  const { sessionId } = decision;
  const calls: PlannedCall[] = [];
  for (const { places = [], ...call } of planned) {
    const tool = deciding.registry.get(call.tool);
    const definition = tool === undefined ? call.definition : definitionHash(tool);
    if (places.length === 0) {
      calls.push({ ...call, definition });
      continue;
    }
    const { workingDirectory } = call;
    const caller = { tenant: store.tenant, sessionId, chain: chainOf(decision), workingDirectory };
    const judged = await judgeCall(call, caller, judging, "approved");
    if (judged.verdict === "deny") return { text: judged.text };
    const now = judged.verdict === "failed" ? places : judged.places;
    calls.push({ ...call, definition, ...plannedPlaces(now) });
  }
  return { calls };
}

async function giveUp(
  id: DecisionId,
  text: string,
  { store }: GateContext,
): Promise<CallAnswer | undefined> {
  const giving = { reason: text, actor: "executor", unlessBegun: `${id}.0` };
  const isOurs = await store.leftBehind.giveUp(id, giving);
  return isOurs ? { answer: "failed", text } : undefined;
}

function begunMeanwhile(error: unknown): undefined {
  if (!isSallyportError(error, "concurrent_modification")) throw error;
}

/** So that whoever asks for the old one is led to the new one. */
function pointer(id: string, successor: string): Along {
  return {
    step: {
      op: "update",
      table: INTERACTIONS,
      id,
      where: { superseded_by: "" },
      set: { superseded_by: successor, version: { plus: 1 }, updated_at: NOW },
    },
  };
}

/** What was made of the rules since somebody said yes: the calls are refused now, or have to be looked at again. */
export interface ChangedRules {
  readonly refused: boolean;
  readonly text: string;
}

/**
 * A person agreed under certain rules and as one of those who had to. When either is not so any more, the yes is void:
 * what the new rules refuse is refused before its first call, everything else is asked about again (I4).
 */
export async function changedRules(
  decision: Decision,
  { preview }: Shown,
  first: number,
  context: GateContext,
): Promise<ChangedRules | undefined> {
  const { policy } = context.judging;
  if (policy.hash !== preview.policyHash) {
    const why = await refusal(decision, first, context);
    if (why !== undefined) return { refused: true, text: why };
    const [was, is] = [preview.policyHash, policy.hash].map((hash) => hash.slice(0, 12));
    const text = `The rules were changed since: they were ${was}, now they are ${is} (version ${policy.version}).`;
    return { refused: false, text };
  }
  const shown = Array.isArray(preview.dryRun) ? preview.dryRun : [];
  const now = reviewOf(decision, context, shown);
  if (!now.possible) return { refused: true, text: now.problem };
  const [was, is] = [preview.requires, now.review.requires].map((one) => canonicalJson(one));
  if (was === is) return undefined;
  return { refused: false, text: `Other people have to say yes now. Then: ${was}. Now: ${is}.` };
}

async function refusal(
  decision: Decision,
  first: number,
  { judging, store }: GateContext,
): Promise<string | undefined> {
  const { sessionId } = decision;
  for (const call of decodeAction(decision).slice(first)) {
    const { workingDirectory } = call;
    const caller = { tenant: store.tenant, sessionId, chain: chainOf(decision), workingDirectory };
    const judged = await judgeCall(call, caller, judging, "approved");
    if (judged.verdict === "deny") return judged.text;
  }
  return undefined;
}
