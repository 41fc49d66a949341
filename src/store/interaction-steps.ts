import type { Interaction, InteractionDraft, InteractionId } from "../model/interaction.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject } from "../util/json.ts";
import { encodeValue } from "../util/value-codec.ts";
import type { Along } from "./along.ts";
import type { Conditions, EventPlan, Values } from "./engine.ts";
import { type Closing, INTERACTIONS, rowOfClosing, rowOfQuestion } from "./interaction-rows.ts";

/** A change of an open question as data, with what must happen in the same transaction. */
export interface Write {
  readonly where?: Conditions;
  readonly set: Values;
  readonly event: { readonly type: string; readonly actor: string; readonly data: JsonObject };
  readonly also?: readonly Along[];
}

export function openingOf(id: InteractionId, draft: InteractionDraft, actor: string): Along {
  const { type, sessionId, hash, decisionId = "", operationId = "" } = draft;
  return {
    step: { op: "insert", table: INTERACTIONS, id, row: rowOfQuestion(draft) },
    event: (step) => ({
      type: "interaction.opened",
      subject: id,
      session: sessionId,
      actor,
      data: {
        type,
        hash,
        decision: decisionId,
        operation: operationId,
        text: draft.displayText.toWellFormed(),
      },
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
    ...(answer === undefined ? {} : { answer_sha256: sha256Hex(encodeValue(answer)) }),
    ...(supersededBy === undefined ? {} : { successor: supersededBy }),
  };
  return { type: `interaction.${EVENTS[outcome]}`, actor: by, data };
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
