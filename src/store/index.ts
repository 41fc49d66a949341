// For authors of stores: an engine becomes a store, and what its records look like.

export { isDecisionState, newDraft } from "../model/decision.ts";
export {
  INTERACTION_MOVES,
  INTERACTION_OUTCOMES,
  INTERACTION_TYPES,
  previewHash,
} from "../model/interaction.ts";
export { OPERATION_MOVES } from "../model/operation.ts";
export type { DecisionStore } from "./decisions.ts";
export type { Engine } from "./engine.ts";
export { type AuditReader, createStore, type TenantStore } from "./store.ts";
