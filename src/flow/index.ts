export {
  createRuntimeState,
  ensureCommonState,
  hasPendingInteraction,
  type Mailbox,
  pendingInteractionType,
  type RuntimeState,
} from "../interactions/runtime-state.ts";
export {
  clearInteraction,
  type Opening,
  openAskUser,
  openConfirm,
  openInteraction,
  resumeFromInteraction,
} from "../interactions/runtime-state-moves.ts";
export { loadRuntimeState, saveRuntimeState } from "../interactions/snapshot-json.ts";
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
export type { FlowSession } from "./flow-session.ts";
export { memoryFlowStates } from "./memory-flow-states.ts";
export { ROUTES, type Route } from "./routes.ts";
export type { ConfirmCard, FlowEvent, FlowOutcome, FlowProblem } from "./run.ts";
