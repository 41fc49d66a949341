export type {
  CommonState,
  FlowPhase,
  FlowSnapshot,
  FlowStateStore,
  LoadedFlow,
  PlanStep,
} from "../model/flow-state.ts";
export {
  type Conversation,
  createFlow,
  type Flow,
  type FlowAnswer,
  type FlowOptions,
  type FlowRequest,
} from "./create-flow.ts";
export { memoryFlowStates } from "./memory-flow-states.ts";
export type { ConfirmCard, FlowEvent, FlowOutcome, FlowProblem } from "./run.ts";
export { ROUTES, type Route } from "./run.ts";
export {
  clearInteraction,
  createRuntimeState,
  ensureCommonState,
  hasPendingInteraction,
  type Mailbox,
  type Opening,
  openAskUser,
  openConfirm,
  openInteraction,
  pendingInteractionType,
  type RuntimeState,
  resumeFromInteraction,
} from "./runtime-state.ts";
export { loadRuntimeState, saveRuntimeState } from "./snapshot-json.ts";
export type { FlowSession } from "./work.ts";
