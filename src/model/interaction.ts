import type { JsonObject, JsonValue } from "../util/json.ts";
import type { DecisionId, SessionId } from "./decision.ts";
import type { Instant } from "./instant.ts";
import type { OperationId } from "./operation.ts";
import type { Requirement, Vote } from "./requirement.ts";

/** The life of a question to a person: open, then closed once, for good. The names are stored and never renamed. */
export const INTERACTION_MOVES = {
  open: ["resolved", "canceled"],
  resolved: [],
  canceled: [],
} as const satisfies Record<string, readonly string[]>;

export type InteractionStatus = keyof typeof INTERACTION_MOVES;
export const INTERACTION_STATUSES = Object.keys(INTERACTION_MOVES) as readonly InteractionStatus[];

export const INTERACTION_TYPES = ["ask_user", "confirm", "connection_lost"] as const;
export type InteractionType = (typeof INTERACTION_TYPES)[number];
export type InteractionId = string;

/** How a question was closed, and what that means for its status. */
export const INTERACTION_OUTCOMES = {
  answered: "resolved",
  approved: "resolved",
  rejected: "resolved",
  /** Another question took its place: the input was edited, or what was shown is no longer what would run. */
  superseded: "resolved",
  /** Silence means no. */
  expired: "canceled",
  canceled: "canceled",
} as const satisfies Record<string, InteractionStatus>;

export type InteractionOutcome = keyof typeof INTERACTION_OUTCOMES;

/** Written into every snapshot, so that a later version knows what it reads. */
export const SNAPSHOT_VERSION = 1;

/** A tool call that waits, as text: this layer knows no tool's arguments, runs nothing and takes nothing back. */
export interface PendingTool {
  readonly tool_name: string;
  readonly args_json: string;
  readonly summary: string;
}

/** What a flow stores of the question it stopped at, and where it goes on. Plain JSON with these very keys. */
export interface InteractionSnapshot {
  readonly version: number;
  readonly interaction_id: InteractionId;
  readonly type: InteractionType;
  readonly status: InteractionStatus;
  readonly display_text: string;
  readonly resume_node: string;
  readonly resume_phase: string;
  readonly resume_step: number;
  /** Left out when empty. */
  readonly pending_tool?: PendingTool;
  /** Left out when empty. */
  readonly metadata?: JsonObject;
}

/** One remark in the talk between reviewers and the agent about an open question; the trail says when. */
export interface Remark {
  readonly by: string;
  readonly text: string;
}

/**
 * A durable question to a person, from whatever depth it was asked. A confirmation has the id of the decision it is about:
 * a decision is asked about once.
 */
export interface Interaction {
  readonly id: InteractionId;
  readonly type: InteractionType;
  readonly status: InteractionStatus;
  readonly sessionId: SessionId;
  /** The agent's call that waits for it, so that the answer finds its question. */
  readonly callId: string;
  readonly displayText: string;
  /** What was shown; an answer that carries another one is not an answer to this. */
  readonly hash: string;
  /** The decision that a confirmation is about, empty for the others. */
  readonly decisionId: DecisionId | "";
  /** The operation whose outcome was lost, empty for the others. */
  readonly operationId: OperationId | "";
  /** The agent, then whoever delegated to it, then on whose behalf they act: none of them may decide. */
  readonly chain: readonly string[];
  /** What may be answered to a question; empty for free text. */
  readonly choices: readonly string[];
  readonly pendingTool: PendingTool | undefined;
  /** Facts for whoever looks at it, and for the flow that goes on. */
  readonly metadata: JsonObject;
  readonly requires: Requirement;
  readonly votes: readonly Vote[];
  readonly remarks: readonly Remark[];
  /** Whose turn it is: reviewers may have asked the agent back. */
  readonly waitsFor: "people" | "agent";
  /** Empty: anybody who may decide. */
  readonly assignedTo: string;
  readonly deadline: Instant;
  /** When and to whom it goes if nobody has answered; undefined for never. */
  readonly escalation: { readonly at: Instant; readonly to: string } | undefined;
  readonly escalated: boolean;
  /** Undefined while it is open. */
  readonly outcome: InteractionOutcome | undefined;
  readonly answer: JsonValue | undefined;
  readonly answeredBy: string;
  readonly reason: string;
  /** The question that took its place. */
  readonly supersededBy: InteractionId | "";
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
  /** Counts the changes; of two at once, one finds the version it expects. */
  readonly version: number;
  /** Order of opening; for paging. */
  readonly ord: number;
}

/** What somebody needs to know to open a question; the rest is decided by the store. */
export interface InteractionDraft {
  readonly type: InteractionType;
  readonly sessionId: SessionId;
  readonly callId: string;
  readonly displayText: string;
  readonly hash: string;
  readonly chain: readonly string[];
  /** From now, by the store's clock; or a moment that something else hangs on too. */
  readonly deadlineMs?: number;
  readonly deadlineAt?: Instant;
  readonly decisionId?: DecisionId;
  readonly operationId?: OperationId;
  readonly choices?: readonly string[];
  readonly pendingTool?: PendingTool;
  readonly metadata?: JsonObject;
  readonly requires?: Requirement;
  readonly assignedTo?: string;
  readonly escalation?: { readonly afterMs: number; readonly to: string };
}
