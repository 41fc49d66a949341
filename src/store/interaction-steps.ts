// Conditions and steps about interactions that the gate writes together with steps about other records.

import { INTERACTIONS, type Interaction, type InteractionId } from "../model/interaction.ts";
import { type Along, type Conditions, NOW, updateStep } from "./engine.ts";

/** The question is the one that was seen, and it was not reassigned meanwhile. */
export function asSeen({ assignedTo }: Interaction, hash: string): Conditions {
  return { hash, assigned_to: assignedTo };
}

/** By the store's clock. */
export const BEFORE_DEADLINE: Conditions = { due_at: { atLeast: NOW } };

/** Older versions let questions about lost outcomes expire; those can still be answered. */
export function stillAsked({ outcome }: Interaction): Conditions {
  return outcome === "expired" ? { status: "canceled", outcome } : { status: "open" };
}

/** A caller that asks for the old decision gets the result of the new one. */
export function pointToSuccessor(id: InteractionId, successor: string): Along {
  const set = { superseded_by: successor, version: { plus: 1 }, updated_at: NOW };
  return { step: updateStep(INTERACTIONS, id, { superseded_by: "" }, set) };
}
