// A decision that takes the place of another one: a person edited its calls, or they are no longer what was approved. Before it:
// decide or run. After it: propose, with both reviews and a new confirmation.

import type { DecisionId } from "../model/decision.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Interaction } from "../model/interaction.ts";
import type { CallAnswer } from "../model/operation.ts";
import { failedMove, reviewMove } from "../store/decisions.ts";
import { asSeen, BEFORE_DEADLINE, pointToSuccessor } from "../store/interaction-steps.ts";
import { closingStep } from "../store/interactions.ts";
import { notBegun } from "../store/operations.ts";
import { definitionHash } from "../tools/registry.ts";
import type { JsonValue } from "../util/json.ts";
import type { GateContext } from "./context.ts";
import { canBeMet, type Edited, type PersonsAnswer } from "./inbox.ts";
import { judgeCall } from "./judge.ts";
import { propose } from "./propose.ts";
import {
  askersOf,
  type CallDecision,
  looksAt,
  type PlannedCall,
  plannedPlaces,
  reviewOf,
  withProposal,
} from "./show.ts";

type Edit = PersonsAnswer & { readonly inputs: Readonly<Record<number, JsonValue>> };

/**
 * A person changes what an agent asked for. The edited calls take every step again: schema, gate, both reviews, preview; the
 * new confirmation replaces the old one in one transaction. What the agent asked, what the person changed it to and what was
 * executed stay three facts: two decisions and an operation.
 */
export async function editCalls(
  context: GateContext,
  question: Interaction,
  edit: Edit,
): Promise<Edited> {
  const { decisionId, sessionId } = question;
  // Checked again by the write; here so that a late edit, or one of another hash, stages nothing.
  if (question.status !== "open" || question.hash !== edit.hash) throw changedMeanwhile(question);
  const { proposal } = withProposal(await context.store.decisions.get(decisionId));
  const { calls: original, chain } = proposal;
  const places = original.map((_, place) => String(place));
  const strange = Object.keys(edit.inputs).find((place) => !places.includes(place));
  if (strange !== undefined || Object.keys(edit.inputs).length === 0) {
    const hint = `Name the calls to change by their place, from 0 to ${original.length - 1}.`;
    throw new SallyportError("invalid_input", { what: "inputs", hint });
  }
  const calls: PlannedCall[] = [];
  for (const [step, call] of original.entries()) {
    const input = Object.hasOwn(edit.inputs, step) ? (edit.inputs[step] as JsonValue) : call.input;
    const { workingDirectory } = call;
    const caller = { tenant: context.store.tenant, sessionId, chain, workingDirectory };
    const judged = await judgeCall(context, { ...call, input }, caller, "approved");
    if (judged.verdict === "deny" || judged.verdict === "failed") {
      return { edited: false, text: judged.text };
    }
    const definition = definitionHash(judged.tool);
    const { places: _, ...rest } = call;
    const changed = { tool: judged.tool.name, definition, input: judged.input };
    calls.push({ ...rest, ...changed, ...plannedPlaces(judged.places) });
  }
  const { dryRun } = await looksAt(context, sessionId, calls);
  const review = reviewOf(context, calls, dryRun);
  const mayApprove = review.possible && review.review.editorMayApprove === true;
  const editors = [...new Set([...proposal.editors, ...(mayApprove ? [] : [edit.by])])];
  const askers = [...askersOf(proposal), ...editors];
  if (review.possible && !canBeMet(review.review.requires, askers, context.people)) {
    const text =
      "Not changed: the person who edits a call cannot approve it, and no other person could approve this one. Reject it with a reason, or reassign it to a person who does not have to approve it.";
    return { edited: false, text };
  }
  const proposed = await propose(context, {
    ...proposal,
    calls,
    keys: [],
    sessionId,
    editors,
    facts: { editedFrom: decisionId, editedBy: edit.by },
    assignedTo: question.assignedTo,
    along: (id) => replaced(question, id, edit),
  }).catch((error: unknown) => {
    throw answeredMeanwhile(error, question);
  });
  if (!proposed.proposed) return { edited: false, text: proposed.reason };
  return { edited: true, interaction: proposed.interaction, preview: proposed.preview };
}

/** Closes the old confirmation with a pointer to the new one, and rejects its decision; both only if no answer was first. */
function replaced(question: Interaction, successor: DecisionId, edit: Edit) {
  const { id, decisionId } = question;
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
    closingStep(id, how, { ...asSeen(question, hash), ...BEFORE_DEADLINE }),
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
 * What was approved is no longer what would run: a target changed, or a deploy changed the tool. Nothing runs. The same calls
 * go back to review, with the difference, and the old decision points to the new one. Undefined when another process has
 * begun or closed it in the meantime: then no one is asked again.
 */
export async function goBack(
  context: GateContext,
  decision: CallDecision,
  difference: string,
): Promise<CallAnswer | undefined> {
  const { id, sessionId, proposal } = decision;
  const reason = `Not executed: ${difference}`;
  const judged = await judgedAnew(context, decision);
  if ("text" in judged) return giveUp(context, id, `${reason} ${judged.text}`);
  const proposed = await propose(context, {
    ...proposal,
    calls: judged.calls,
    keys: [],
    sessionId,
    facts: { cameBackFrom: id, difference },
    along: (successor) => [
      failedMove(id, `${reason} It went back to review as decision ${successor}.`, "executor"),
      pointToSuccessor(id, successor),
      { step: notBegun(`${id}.0`) },
    ],
  }).catch(begunMeanwhile);
  if (proposed === undefined) return undefined;
  if (!proposed.proposed) {
    const text = `${reason} Looked at anew, the review said no: ${proposed.reason}`;
    return giveUp(context, id, text);
  }
  const { interaction } = proposed;
  const text = `${reason} It went back to review as decision ${interaction.id}. Go on with something else, or ask later.`;
  return { answer: "pending", text, decisionId: interaction.id, interactionId: interaction.id };
}

/** With the current tools and places, which the next reviewer is asked about. A denial by the gate stays a denial. */
async function judgedAnew(
  context: GateContext,
  { sessionId, proposal: { calls: planned, chain } }: CallDecision,
): Promise<{ readonly calls: readonly PlannedCall[] } | { readonly text: string }> {
  const { tenant } = context.store;
  const calls: PlannedCall[] = [];
  for (const { places = [], ...call } of planned) {
    const tool = context.registry.get(call.tool);
    const definition = tool === undefined ? call.definition : definitionHash(tool);
    if (places.length === 0) {
      calls.push({ ...call, definition });
      continue;
    }
    const { workingDirectory } = call;
    const caller = { tenant, sessionId, chain, workingDirectory };
    const judged = await judgeCall(context, call, caller, "approved");
    if (judged.verdict === "deny") return { text: judged.text };
    const now = judged.verdict === "failed" ? places : judged.places;
    calls.push({ ...call, definition, ...plannedPlaces(now) });
  }
  return { calls };
}

async function giveUp(
  { store }: GateContext,
  id: DecisionId,
  text: string,
): Promise<CallAnswer | undefined> {
  const giving = { reason: text, actor: "executor", unlessBegun: `${id}.0` };
  const isOurs = await store.leftBehind.giveUp(id, giving);
  return isOurs ? { answer: "failed", text } : undefined;
}

function begunMeanwhile(error: unknown): undefined {
  if (!isSallyportError(error, "concurrent_modification")) throw error;
}
