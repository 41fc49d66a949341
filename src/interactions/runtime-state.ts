import {
  type CommonState,
  DEFAULT_ROUND_LIMIT,
  type FlowPhase,
  type PlanStep,
} from "../model/flow-state.ts";
import type {
  InteractionId,
  InteractionSnapshot,
  InteractionType,
  PendingTool,
} from "../model/interaction.ts";

/** A snapshot while a state holds it: closing it is seen by whoever kept a hold of it. */
export type HeldSnapshot = {
  -readonly [Key in keyof InteractionSnapshot]: InteractionSnapshot[Key];
};

/**
 * Hands a tool call from Execute to Confirm, and an accepted one back. It lives as long as the process: it is never saved, so
 * whoever goes on after a restart must find the call somewhere else.
 */
export interface Mailbox {
  readonly tool: PendingTool;
  /** The durable question about it. */
  readonly interactionId: InteractionId;
  /** A reviewer changed the call: `tool` is what the agent asked for, not what would run. */
  readonly isChanged?: true;
}

/** Flow control is in `common`, what interrupted it in `pending`; neither says anything about the other. */
export interface RuntimeState {
  common: CommonState;
  pending: HeldSnapshot | undefined;
  mailbox: Mailbox | undefined;
}

/** Usable as it is; `common` is kept, not copied. */
export function createRuntimeState(common: Partial<CommonState> = {}): RuntimeState {
  const state = { common: common as CommonState, pending: undefined, mailbox: undefined };
  ensureCommonState(state);
  return state;
}

/** Fills in what is missing and leaves the rest alone. Answers the very object that the state holds. */
export function ensureCommonState(state: RuntimeState | undefined): CommonState | undefined {
  if (state === undefined) return undefined;
  state.common ??= {} as CommonState;
  const { common } = state;
  for (const [name, value] of Object.entries(DEFAULTS)) {
    const key = name as keyof CommonState;
    if (common[key] === undefined || common[key] === null) Object.assign(common, { [key]: value });
  }
  if (common.phase === "") common.phase = FIRST_PHASE;
  if (!(common.round_limit > 0)) common.round_limit = DEFAULT_ROUND_LIMIT;
  return common;
}

export const FIRST_PHASE: FlowPhase = "planning";

const NO_STEPS: readonly PlanStep[] = [];
const DEFAULTS: CommonState = {
  trace_id: "",
  user_id: "",
  conversation_id: "",
  phase: FIRST_PHASE,
  plan_steps: NO_STEPS,
  current_step: 0,
  round_limit: DEFAULT_ROUND_LIMIT,
  rounds_used: 0,
};

/** The one question that routing has to ask first. */
export function hasPendingInteraction(state: RuntimeState | undefined): boolean {
  return state?.pending?.status === "open";
}

/** Empty when nothing is open. */
export function pendingInteractionType(state: RuntimeState | undefined): InteractionType | "" {
  return state?.pending?.status === "open" ? state.pending.type : "";
}
