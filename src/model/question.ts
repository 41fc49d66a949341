import type { JsonObject, JsonValue } from "../util/json.ts";
import type { Interaction, InteractionId } from "./interaction.ts";

/** What an agent asks a person. Asked twice with the same id it is one question. */
export interface Question {
  /** The agent's own id for it, unique in its session. */
  readonly callId: string;
  readonly text: string;
  /** What may be answered; left out: anything. */
  readonly choices?: readonly string[];
  /** Silence after this time means no answer. */
  readonly deadlineMs?: number;
  readonly assignedTo?: string;
  readonly escalation?: { readonly afterMs: number; readonly to: string };
  readonly metadata?: JsonObject;
}

/** What became of a question so far. */
export type QuestionAnswer =
  | { readonly answer: "pending"; readonly interactionId: InteractionId; readonly text: string }
  | {
      readonly answer: "answered";
      readonly interactionId: InteractionId;
      readonly value: JsonValue;
      readonly by: string;
    }
  /** Nobody answered in time, or it was called off. */
  | {
      readonly answer: "unanswered";
      readonly interactionId: InteractionId;
      readonly outcome: Interaction["outcome"];
      readonly text: string;
    };
