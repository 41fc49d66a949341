import type { ModelMessage } from "ai";
import type { RuntimeState } from "../interactions/runtime-state.ts";
import type { FlowStateStore } from "../model/flow-state.ts";
import type { InteractionSnapshot, PendingTool } from "../model/interaction.ts";
import type { Ids } from "../util/ids.ts";
import type { FlowModel } from "./flow-model.ts";
import type { FlowSession } from "./flow-session.ts";
import type { ShownTool } from "./prompts.ts";
import type { Work } from "./work.ts";

/** What a node gets: the state it works on, and the services around it, which are never saved. */
export interface Run {
  readonly state: RuntimeState;
  readonly work: Work;
  readonly session: FlowSession;
  readonly parts: FlowParts;
  readonly request: RunRequest;
  /** Whether this request is the first of its run. */
  readonly isNew: boolean;
  /** The revision saved last; 0 for none. */
  revision: number;
  outcome: FlowOutcome | undefined;
}

export interface RunRequest {
  readonly message: string;
  readonly history: readonly ModelMessage[];
  readonly signal: AbortSignal | undefined;
}

export interface FlowParts {
  readonly model: FlowModel | undefined;
  readonly tools: () => readonly ShownTool[];
  readonly states: FlowStateStore | undefined;
  readonly ids: Ids;
  readonly keepMs: number;
  readonly roundLimit: number;
  readonly maxCorrections: number;
  readonly say: (event: FlowEvent) => Promise<void>;
  readonly problem: (problem: FlowProblem) => void;
}

/** A card for a person. It is sent before the question is open in the flow, and again after a restart in between. */
export interface ConfirmCard {
  readonly interactionId: string;
  readonly text: string;
  /** Undefined when the plan is to be confirmed. */
  readonly tool: PendingTool | undefined;
}

/** What the client of a conversation is told while a run goes on. */
export type FlowEvent =
  | { readonly type: "reply"; readonly conversationId: string; readonly text: string }
  | { readonly type: "card"; readonly conversationId: string; readonly card: ConfirmCard }
  | {
      readonly type: "question" | "confirmation" | "connection_lost";
      readonly conversationId: string;
      readonly interaction: InteractionSnapshot;
    }
  | { readonly type: "piece"; readonly conversationId: string; readonly text: string }
  /** What came in pieces so far is void: the model broke off. */
  | { readonly type: "restart"; readonly conversationId: string }
  | {
      readonly type: "delivered";
      readonly conversationId: string;
      readonly summary: string;
      /** Put together without the model. */
      readonly isMechanical: boolean;
    };

export interface FlowProblem {
  readonly conversationId: string;
  readonly what: "save" | "delete" | "summary";
  readonly error: unknown;
}

/** What became of a request. */
export type FlowOutcome =
  | { readonly outcome: "replied"; readonly text: string }
  | { readonly outcome: "waiting"; readonly interaction: InteractionSnapshot }
  | { readonly outcome: "delivered"; readonly summary: string }
  /** The question that was open has been called off: a message says how it goes on. */
  | { readonly outcome: "stopped" }
  /** Nothing is stored of this conversation that could go on. */
  | { readonly outcome: "nothing_stored" }
  /** Not an answer to the question that is open now; nothing was done. */
  | { readonly outcome: "refused"; readonly text: string }
  /** Another process went on with the conversation in the meantime; this one has stopped. */
  | { readonly outcome: "taken_over" };
