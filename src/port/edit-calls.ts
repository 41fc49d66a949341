import { canBeMet } from "../interactions/who-may.ts";
import type { DecisionId } from "../model/decision.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Interaction } from "../model/interaction.ts";
import { reviewMove } from "../store/decision-moves.ts";
import { NOW } from "../store/engine.ts";
import { closingStep } from "../store/interaction-steps.ts";
import { definitionHash } from "../tools/definition-hash.ts";
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
import type { Edited, PersonsAnswer } from "./inbox.ts";
import { judgeCall } from "./judge-call.ts";
import { looksAt } from "./preview.ts";
import { propose, reviewOf } from "./propose.ts";
import type { Rooms } from "./rooms.ts";

type Edit = PersonsAnswer & { readonly inputs: Readonly<Record<number, JsonValue>> };

/**
 * A person changes what an agent asked for. The edited calls go the whole way again: schema, gate, both reviews, preview; the
 * new question takes the place of the old one in one transaction. What the agent asked, what the person made of it and what
 * was executed stay three facts: two decisions and an operation.
 */
export async function editCalls(question: Interaction, edit: Edit, rooms: Rooms): Promise<Edited> {
  const { decisionId, sessionId } = question;
  // Looked at again where it is written; here so that who comes too late, or saw something else, leaves nothing behind.
  if (question.status !== "open" || question.hash !== edit.hash) throw changedMeanwhile(question);
  const decision = await rooms.store.decisions.get(decisionId);
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
    const caller = { tenant: rooms.store.tenant, sessionId, chain, workingDirectory };
    const judged = await judgeCall({ ...call, input }, caller, rooms.judging, "approved");
    if (judged.verdict === "deny" || judged.verdict === "failed") {
      return { edited: false, text: judged.text };
    }
    const definition = definitionHash(judged.tool);
    const { places: _, ...rest } = call;
    const changed = { tool: judged.tool.name, definition, input: judged.input };
    calls.push({ ...rest, ...changed, ...plannedPlaces(judged.places) });
  }
  const changed = { ...decision, diff: { ...decision.diff, raw: encodeAction(calls) } };
  const { dryRun } = await looksAt(changed, rooms.deciding);
  const review = reviewOf(changed, rooms, dryRun);
  const mayApprove = review.possible && review.review.editorMayApprove === true;
  const editors = [...new Set([...editorsOf(decision), ...(mayApprove ? [] : [edit.by])])];
  const askers = [...askersOf(decision), ...editors];
  if (review.possible && !canBeMet(review.review.requires, askers, rooms.people)) {
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
    rooms,
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
