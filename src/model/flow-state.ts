import type { JsonObject } from "../util/json.ts";
import type { InteractionSnapshot } from "./interaction.ts";
import { instant, integer, key, place, record, text } from "./record.ts";

/** The phases of a run: the main line, plain conversation, and waiting for a person. Stored, so never renamed. */
export const FLOW_PHASES = [
  "planning",
  "waiting_confirm",
  "executing",
  "done",
  "chatting",
  "interrupted",
] as const;
export type FlowPhase = (typeof FLOW_PHASES)[number];

export const DEFAULT_ROUND_LIMIT = 30;

export interface PlanStep {
  readonly text: string;
  /** How to see that the step is done. */
  readonly done_when: string;
}

/** What steers a flow, whatever it is interrupted by. Mutable: nodes write on it, and it is saved after each. */
export interface CommonState {
  /** One run; tool calls get their keys from it. */
  trace_id: string;
  user_id: string;
  conversation_id: string;
  /** Empty means not set yet. */
  phase: FlowPhase | "";
  plan_steps: readonly PlanStep[];
  /** From 0; equals the number of steps when all are done. */
  current_step: number;
  round_limit: number;
  rounds_used: number;
}

/** A runtime state as it is stored: what a node hands on to the next one only in memory is not in it. */
export interface SavedRuntimeState {
  readonly common_state: CommonState;
  readonly pending_interaction?: InteractionSnapshot;
}

export const FLOW_SNAPSHOT_VERSION = 1;

/** Everything a process needs to resume a conversation; no request, service or tool schema is part of it. */
export interface FlowSnapshot {
  readonly version: number;
  readonly conversation_id: string;
  /** The session its calls and questions belong to. */
  readonly session_id: string;
  /** The node that ran last. */
  readonly node: string;
  /** Counts the saves of this run, from 1. */
  readonly revision: number;
  readonly state: SavedRuntimeState;
  /** What the run has found out and done so far, in the flow's own form. */
  readonly work: JsonObject;
}

/** The one snapshot of each conversation, whose id is the key. */
export const FLOW_STATES = record(
  "flow_states",
  {
    conversationId: key(),
    sessionId: text(),
    traceId: text(),
    /** The node that ran last. */
    node: text(),
    revision: integer(),
    /** SHA-256 of the snapshot's text, which the audit log also proves. */
    hash: text(),
    snapshot: text(),
    expiresAt: instant(),
    updatedAt: instant(),
    ord: place(),
  },
  { indexes: [{ name: "by_expiry", on: ["expires_at"] }] },
);

/**
 * Where flows keep the one snapshot of each conversation. Shape: callback; the flow waits for every call. Real failures throw.
 */
export interface FlowStateStore {
  /**
   * Overwrites the snapshot before this one (revision 1: if there is none). False when there is another one: then another
   * process continues the conversation. Snapshots expire by themselves.
   */
  save(snapshot: FlowSnapshot, keep: { readonly keepMs: number }): Promise<boolean>;
  /** A missing or expired snapshot is not an error. */
  load(conversationId: string): Promise<LoadedFlow>;
  /** Only while it is still that run's. May be repeated. */
  delete(conversationId: string, traceId: string): Promise<void>;
}

export type LoadedFlow =
  | { readonly found: true; readonly snapshot: FlowSnapshot }
  | { readonly found: false };
