export type { AuditSink, ToolAuditEntry } from "./audit/observer.ts";
export { type VerifyReport, verifyStore } from "./audit/verify.ts";
export { createGate, type Gate } from "./gate/create-gate.ts";
export type { CommandHook, GateHook, HookEvent } from "./gate/hooks.ts";
export { toModelContent } from "./gate/image-result.ts";
export type { Inbox, Person } from "./gate/inbox.ts";
export { askUserTool } from "./gate/inbox.ts";
export { onOperation, readLog } from "./gate/operation-log.ts";
export type { AtPoint, CrashPoint, GateOptions, OpenCall } from "./gate/options.ts";
export { orchestrate } from "./gate/orchestrate.ts";
export {
  allowAlways,
  createStaging,
  type Staging,
  tenantDenyGuard,
  waitsForUpstreamGuard,
} from "./gate/review.ts";
export { describeRollback, type RollbackReport } from "./gate/rollback-report.ts";
export type { Session } from "./gate/session.ts";
export type { StandingRules } from "./gate/standing-rules.ts";
export { startUpkeep } from "./gate/upkeep.ts";
export type { AuditEntry, TrailEntry } from "./model/audit-entry.ts";
export {
  DECISION_STATES,
  type Decision,
  type DecisionState,
  type Diff,
  type Guard,
  isFinal,
  isLegal,
  type Metadata,
  MOVES,
  NO_VERDICT,
  type ReviewedCall,
  type ReviewRequest,
  type Validator,
  type Verdict,
} from "./model/decision.ts";
export { ERRORS, type ErrorCode, isSallyportError, SallyportError } from "./model/errors.ts";
export { type Finding, GATE_POINTS, type GatePoint, type Grant } from "./model/finding.ts";
export type {
  Interaction,
  InteractionSnapshot,
  Preview,
  Question,
  Requirement,
} from "./model/interaction.ts";
export { parseJson } from "./model/names.ts";
export type { CallAnswer, CallRequest, NewCall, Operation } from "./model/operation.ts";
export type { InputPattern, StandingRule } from "./model/standing-rule.ts";
export {
  type CheckpointHandler,
  checkConfidence,
  HOOK_POINTS,
  type Hook,
} from "./policy/before-call.ts";
export type { FileRoot, GatePolicy } from "./policy/decide.ts";
export { NO_RULES, type Policy, type Rule } from "./policy/policy.ts";
export type { ReviewRule } from "./policy/review-rules.ts";
export type { Store } from "./store/store.ts";
export { type Clock, manualClock, systemClock } from "./util/clock.ts";
