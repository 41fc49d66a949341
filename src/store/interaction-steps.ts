import type { Interaction, InteractionDraft, InteractionId } from "../model/interaction.ts";
import { sha256Hex } from "../util/hash.ts";
import { encodeValue } from "../util/value-codec.ts";
import type { Along } from "./along.ts";
import type { Conditions, EventPlan, Values } from "./engine.ts";
import { type Closing, INTERACTIONS, rowOfClosing, rowOfQuestion } from "./interaction-rows.ts";

/** A change of an open question as data, with what must happen in the same transaction. */
export interface Write {
  readonly where?: Conditions;
  readonly set: Values;
  readonly event: Pick<EventPlan, "type" | "actor" | "data" | "hashes">;
  readonly also?: readonly Along[];
}

export function openingOf(id: InteractionId, draft: InteractionDraft, actor: string): Along {
  const { type, sessionId, hash, decisionId = "", operationId = "" } = draft;
  // What a confirmation shows holds a random number. The other hashes are made of texts that somebody could try out.
  const isGuessable = type !== "confirm";
  return {
    step: { op: "insert", table: INTERACTIONS, id, row: rowOfQuestion(draft) },
    event: (step) => ({
      type: "interaction.opened",
      subject: id,
      session: sessionId,
      actor,
      data: {
        type,
        ...(isGuessable ? {} : { hash }),
        decision: decisionId,
        operation: operationId,
        text: draft.displayText.toWellFormed(),
      },
      ...(isGuessable ? { hashes: { hash } } : {}),
      facts: { deadline: { left: "deadline", step } },
    }),
  };
}

/** Closes an open question for which `where` holds too; told in the trail with the session the row names. */
export function closingStep(id: InteractionId, how: Closing, where: Conditions): Along {
  return {
    step: {
      op: "update",
      table: INTERACTIONS,
      id,
      where: { status: "open", ...where },
      set: rowOfClosing(how),
    },
    event: (step) => ({ ...closingEvent(how), subject: id, session: { left: "session_id", step } }),
  };
}

export function closingEvent(how: Closing): Write["event"] {
  const { outcome, by, reason, answer, supersededBy } = how;
  const data = {
    outcome,
    reason: reason.toWellFormed(),
    ...(supersededBy === undefined ? {} : { successor: supersededBy }),
  };
  const event = { type: `interaction.${EVENTS[outcome]}`, actor: by, data };
  return answer === undefined
    ? event
    : { ...event, hashes: { answer: sha256Hex(encodeValue(answer)) } };
}

const EVENTS = {
  answered: "answered",
  approved: "answered",
  rejected: "answered",
  superseded: "superseded",
  expired: "expired",
  canceled: "canceled",
} as const;

export function told(event: Write["event"], { id, sessionId }: Interaction): EventPlan {
  return { ...event, subject: id, session: sessionId };
}
