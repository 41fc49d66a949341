import type { JsonValue } from "../util/json.ts";
import type { DecisionId } from "./decision.ts";
import type { Finding } from "./finding.ts";
import type { InteractionId } from "./interaction.ts";
import type { OperationId, RecordedUndo } from "./operation.ts";

/** One tool invocation an agent asks for. */
export interface CallRequest {
  /** The agent's own id for this call; answers carry it. */
  readonly callId: string;
  /** Name or alias. */
  readonly tool: string;
  /** JSON text as the model wrote it, or a value. */
  readonly input: string | JsonValue;
  /** The message that asked for it; rollback works per message. */
  readonly messageId?: string;
  readonly turn?: number;
  /** With a key the call is made once in its session: asked for again, also by a restarted process, it answers what became of it. */
  readonly key?: string;
}

/**
 * What became of a call, always as a value. `text` is written for the model: what happened or was refused, why, and what to
 * do instead. `pending` says plainly that nothing was executed yet.
 */
export type CallAnswer =
  | {
      readonly answer: "done";
      readonly text: string;
      /** Empty when a person answered a question: nothing was executed for it. */
      readonly operationId: OperationId | "";
      /** Handed through as the tool gave it: not copied, not serialised. */
      readonly data?: unknown;
      readonly undo?: RecordedUndo;
      /** Set exactly when `text` is a summary and the whole was stored under `storedPath`. */
      readonly truncated: boolean;
      readonly storedPath: string;
    }
  | {
      readonly answer: "pending";
      readonly text: string;
      /** Empty for a question of the agent's own. */
      readonly decisionId: DecisionId | "";
      /** What waits in the inbox. */
      readonly interactionId: InteractionId;
    }
  | { readonly answer: "denied"; readonly text: string; readonly findings: readonly Finding[] }
  | {
      readonly answer: "failed";
      readonly text: string;
      readonly operationId?: OperationId;
      readonly data?: unknown;
    }
  | {
      readonly answer: "unknown";
      readonly text: string;
      readonly operationId: OperationId;
      /** The question to people about it; left out while it may still turn out without them. */
      readonly interactionId?: InteractionId;
    };
