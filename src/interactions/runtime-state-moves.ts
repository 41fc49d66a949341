import type { FlowPhase } from "../model/flow-state.ts";
import { type PendingTool, SNAPSHOT_VERSION } from "../model/interaction.ts";
import {
  ensureCommonState,
  FIRST_PHASE,
  type HeldSnapshot,
  hasPendingInteraction,
  type RuntimeState,
} from "./runtime-state.ts";

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
