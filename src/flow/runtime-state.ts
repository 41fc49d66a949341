import {
  type CommonState,
  DEFAULT_ROUND_LIMIT,
  type FlowPhase,
  type PlanStep,
} from "../model/flow-state.ts";
import {
  type InteractionId,
  type InteractionSnapshot,
  type InteractionType,
  type PendingTool,
  SNAPSHOT_VERSION,
} from "../model/interaction.ts";

/** A snapshot while a state holds it: closing it is seen by whoever kept a hold of it. */
type HeldSnapshot = {
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

const FIRST_PHASE: FlowPhase = "planning";

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

/** What is asked, and the node that goes on with the answer. */
export interface Opening {
  readonly interactionId: string;
  readonly displayText: string;
  readonly resumeNode: string;
}

/** False, and nothing happens, without a state or while another question is open: that one keeps its way back. */
export function openAskUser(state: RuntimeState | undefined, opening: Opening): boolean {
  return openInteraction(state, opening, { type: "ask_user" });
}

/** Without a tool it is the plan that is to be confirmed. Refuses as `openAskUser` does. */
export function openConfirm(
  state: RuntimeState | undefined,
  opening: Opening,
  tool?: PendingTool,
): boolean {
  // Copied fact by fact: the caller's object may change, and may hold more than these three.
  const copy = tool && {
    tool_name: tool.tool_name,
    args_json: tool.args_json,
    summary: tool.summary,
  };
  return openInteraction(state, opening, {
    type: "confirm",
    ...(copy === undefined ? {} : { pending_tool: copy }),
  });
}

/**
 * For whoever builds an interaction of another kind. The phase and step of this moment become the way back, and the flow is
 * interrupted from here on.
 */
export function openInteraction(
  state: RuntimeState | undefined,
  { interactionId, displayText, resumeNode }: Opening,
  own: Pick<HeldSnapshot, "type" | "pending_tool" | "metadata">,
): boolean {
  if (state === undefined || hasPendingInteraction(state)) return false;
  const common = ensureCommonState(state);
  if (common === undefined) return false;
  state.pending = {
    version: SNAPSHOT_VERSION,
    interaction_id: interactionId.trim(),
    status: "open",
    display_text: displayText.trim(),
    resume_node: resumeNode.trim(),
    resume_phase: common.phase || FIRST_PHASE,
    resume_step: common.current_step,
    ...own,
  };
  common.phase = "interrupted";
  return true;
}

/**
 * Consumes the open interaction: phase and step are as they were before it. It chooses no node and restores no mailbox; take
 * the pending tool out first, and after an accepted confirmation set the phase to executing. False when nothing is open.
 */
export function resumeFromInteraction(state: RuntimeState | undefined): boolean {
  const pending = state?.pending;
  if (state === undefined || pending === undefined || pending.status !== "open") return false;
  const common = ensureCommonState(state);
  if (common === undefined) return false;
  common.phase = pending.resume_phase as FlowPhase;
  common.current_step = pending.resume_step;
  pending.status = "resolved";
  state.pending = undefined;
  return true;
}

/** Calls the question off. The flow stays interrupted until somebody decides how it goes on. */
export function clearInteraction(state: RuntimeState | undefined): void {
  if (state?.pending === undefined) return;
  state.pending.status = "canceled";
  state.pending = undefined;
}
