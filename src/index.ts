export {
  type AnchorSink,
  createSigner,
  generateSigningKey,
  readAnchors,
} from "./audit/anchor.ts";
export { fileAnchorSink } from "./audit/anchor-file.ts";
export { type Anchorer, type AnchorerOptions, createAnchorer } from "./audit/anchorer.ts";
export { exportStore, exportTrail, readExport } from "./audit/export.ts";
export { followTrail } from "./audit/feed.ts";
export type { AuditOutcome, AuditSink, ObserverProblem, ToolAuditEntry } from "./audit/observer.ts";
export { createRedactor, type Redactor, type RedactorOptions } from "./audit/redact.ts";
export { type StoryLine, sessionStory } from "./audit/story.ts";
export type { VerifyReport } from "./audit/verify.ts";
export { type VerifyOptions, verifyStore, verifyTrail } from "./audit/verify.ts";
export { scopePolicy } from "./delegation/bounds.ts";
export type {
  Delegated,
  DelegationOutcome,
  DelegationRequest,
} from "./delegation/plan.ts";
export {
  createPlan,
  type DelegationPlan,
  type PlanVerdict,
  validatePlan,
} from "./delegation/plan.ts";
export type { NewRun, Runs } from "./delegation/runs.ts";
export { type LoopParts, reduceRun, replayRun, runLoop } from "./delegation/runs.ts";
export { type Capsule, describeCapsule } from "./delegation/scope.ts";
export { verifyTools } from "./delegation/verify.ts";
export type { Job, Work, Worker, WorkMode, WorkResult } from "./delegation/worker.ts";
export { type Handover, processWorker } from "./delegation/worker.ts";
export type { WaitOptions } from "./gate/answers.ts";
export { askUserTool } from "./gate/ask.ts";
export type { AttentionOptions, Decoy, Reviewers } from "./gate/attention.ts";
export { createGate, type Gate, type OpenSession } from "./gate/create-gate.ts";
export { allowAlways, tenantDenyGuard, waitsForUpstreamGuard } from "./gate/guards.ts";
export { type ImageResult, isImageResult, toModelContent } from "./gate/image-result.ts";
export type {
  ApprovalOutcome,
  Approved,
  BatchItem,
  Edited,
  FoundOut,
  Inbox,
  PersonsAnswer,
  PersonsYes,
  Swept,
} from "./gate/inbox.ts";
export { type OperationEvent, onOperation, readLog } from "./gate/operation-log.ts";
export type { AtPoint, CrashPoint, GateOptions } from "./gate/options.ts";
export { type CallResult, orchestrate } from "./gate/orchestrate.ts";
export type { Recovered } from "./gate/recover.ts";
export { afterRestore, type RestoreOptions, type Voided } from "./gate/restore.ts";
export { createStaging, type Staging, type StagingOptions } from "./gate/review.ts";
export type { RollbackReport } from "./gate/rollback-report.ts";
export { describeRollback } from "./gate/rollback-report.ts";
export type { CallOptions, Session } from "./gate/session.ts";
export type { NewStandingRule, StandingRules } from "./gate/standing-rules.ts";
export { startUpkeep, type UpkeepOptions } from "./gate/upkeep.ts";
export { type Breaker, createBreaker } from "./gate/validators/validated-tool.ts";
export type { Person } from "./gate/who-may.ts";
export type { AuditEntry, ChainHead } from "./model/audit-entry.ts";
export type { CallAnswer, CallRequest } from "./model/call.ts";
export {
  DECISION_STATES,
  type Decision,
  type DecisionId,
  type DecisionState,
  type Diff,
  isDecisionState,
  isFinal,
  isLegal,
  type Metadata,
  MOVES,
  newDraft,
  type SessionId,
} from "./model/decision.ts";
export {
  DEFAULT_PERMISSION,
  DELEGATION_MOVES,
  type Delegation,
  type DelegationId,
  READ_ONLY_ROLES,
  ROLES,
  type Role,
  type Scope,
  WRITE_PERMISSIONS,
  type WritePermission,
} from "./model/delegation.ts";
export {
  ERRORS,
  type ErrorCode,
  isSallyportError,
  SallyportError,
} from "./model/errors.ts";
export type { Finding, FindingSeverity } from "./model/finding.ts";
export { GATE_POINTS, type GatePoint, type Grant } from "./model/finding.ts";
export type { Factor, Question, QuestionAnswer, Requirement, Vote } from "./model/interaction.ts";
export {
  INTERACTION_MOVES,
  INTERACTION_OUTCOMES,
  INTERACTION_TYPES,
  type Interaction,
  type InteractionOutcome,
  type InteractionSnapshot,
  type InteractionStatus,
  type InteractionType,
  type PendingTool,
  type Preview,
  previewHash,
} from "./model/interaction.ts";
export { OPERATION_MOVES, type Operation, type OperationStatus } from "./model/operation.ts";
export { parseJson } from "./model/parse-json.ts";
export type { CompletionPromise, Evidence, EvidenceNeed } from "./model/promise.ts";
export { PHASE_MOVES, PHASES, type Phase, type Run, type RunEvent } from "./model/run.ts";
export type { InputPattern, StandingRule, ValueTest } from "./model/standing-rule.ts";
export { TASK_MOVES, type Task, type TaskEvent } from "./model/task.ts";
export type { Guard, Validator } from "./model/verdict.ts";
export { isReviewed, NO_VERDICT, type Severity, type Verdict } from "./model/verdict.ts";
export type { CheckpointHandler } from "./policy/checkpoint.ts";
export type { GatePolicy } from "./policy/gate-policy.ts";
export type { Hook } from "./policy/hooks.ts";
export { HOOK_POINTS, type HookAnswer, type HookPoint } from "./policy/hooks.ts";
export type { FileRoot } from "./policy/permission.ts";
export { NO_RULES, type Policy, policyHash, type Rule } from "./policy/policy.ts";
export type { ReviewRule } from "./policy/review-rules.ts";
export { createStore } from "./store/create-store.ts";
export type { By, DecisionQuery, DecisionStore } from "./store/decisions.ts";
export type { Engine } from "./store/engine.ts";
export { claimHold } from "./store/left-behind.ts";
export type { AuditReader, Store, TenantStore } from "./store/store.ts";
export type { ClaimRef, TaskStore } from "./store/tasks.ts";
export { checkClaim } from "./tasks/claim-next.ts";
export type { MayComplete, TaskList } from "./tasks/create-task-list.ts";
export { createTaskList } from "./tasks/create-task-list.ts";
export { exportJsonTasks, importJsonTasks } from "./tasks/json-tasks.ts";
export { memoryTaskStore } from "./tasks/memory-task-store.ts";
export { tiesFulfilled } from "./tasks/rules.ts";
export { startHeartbeat, startWatchdog } from "./tasks/watchdog.ts";
export { type Clock, manualClock, systemClock } from "./util/clock.ts";
