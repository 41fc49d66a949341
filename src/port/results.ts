import type { CallAnswer } from "../model/call.ts";
import type { Decision, DecisionId } from "../model/decision.ts";
import { isSallyportError } from "../model/errors.ts";
import type { InteractionId } from "../model/interaction.ts";
import type { Operation } from "../model/operation.ts";
import type { TenantStore } from "../store/store.ts";
import { recorded, UNDONE } from "./answer-of.ts";

/** What became of one call of a decision, from what is stored: the same answer in every process, however often it is asked. */
export async function resultOfDecision(
  id: DecisionId,
  step: number,
  store: TenantStore,
): Promise<CallAnswer> {
  const asked = await store.interactions.peek(id);
  // Edited, or gone back to review: the call lives on under another id.
  if (asked !== undefined && asked.supersededBy !== "") {
    return resultOfDecision(asked.supersededBy, step, store);
  }
  const decision = await store.decisions.get(id);
  const operation = await operationOf(`${id}.${step}`, store);
  switch (decision.state) {
    case "pending_tech":
    case "pending_ml":
      return pending(id);
    case "rejected_tech":
      return rejection(decision.techVerdict.reason);
    case "rejected_ml":
      return rejection(decision.bizVerdict.reason, decision.bizVerdict.validator);
    case "approved":
      if (operation !== undefined) return recorded(operation);
      return (await store.killSwitch.isStopped()) ? held(id) : approved(id);
    case "executed":
      return operation === undefined ? closedByHand(decision) : recorded(operation);
    case "failed":
      return { answer: "failed", text: failureOf(decision, operation) };
  }
}

export async function operationOf(id: string, store: TenantStore): Promise<Operation | undefined> {
  try {
    return await store.operations.get(id);
  } catch (error) {
    if (isSallyportError(error, "not_found")) return undefined;
    throw error;
  }
}

export function pending(id: InteractionId): CallAnswer {
  const text = `Not executed: it waits for approval as decision ${id}. Go on with something else, or ask later.`;
  return { answer: "pending", text, decisionId: id, interactionId: id };
}

/** An approval that is kept while everything is stopped. */
export function held(id: DecisionId): CallAnswer {
  const text = `Approved. Everything is stopped; it runs when work resumes, as decision ${id}. Do not repeat it; ask later.`;
  return { answer: "pending", text, decisionId: id, interactionId: id };
}

function approved(id: DecisionId): CallAnswer {
  const text = `Approved as decision ${id} and about to be carried out. Do not repeat it; ask later.`;
  return { answer: "pending", text, decisionId: id, interactionId: id };
}

export function rejection(reason: string, by = ""): CallAnswer {
  const finding = { severity: "soft-deny", policy: "review", message: reason } as const;
  const who = by === "" ? "the review" : by;
  const text = `Not executed: ${who} said no. ${reason} Change the call or take another way.`;
  return { answer: "denied", text, findings: [finding] };
}

function closedByHand({ executionProof }: Decision): CallAnswer {
  const text = `It was executed elsewhere: ${JSON.stringify(executionProof) ?? "no proof was given"}.`;
  return { answer: "done", text, operationId: "", truncated: false, storedPath: "" };
}

/** A bundle fails as a whole: what was done of it was taken back, whatever this one call had answered. */
function failureOf({ executionError }: Decision, operation: Operation | undefined): string {
  if (operation?.status === "failed" && operation.error !== "") return operation.error;
  const why = executionError || "It failed.";
  return operation?.status === "rolled_back" ? `${UNDONE} Why: ${why}` : why;
}
