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
export type { ObserverProblem } from "./audit/observer-problem.ts";
export { createRedactor, type Redactor, type RedactorOptions } from "./audit/redact.ts";
export type { AuditOutcome, AuditSink, ToolAuditEntry } from "./audit/sink.ts";
export { type StoryLine, sessionStory } from "./audit/story.ts";
export { type VerifyOptions, verifyStore, verifyTrail } from "./audit/verify.ts";
export type { VerifyReport } from "./audit/verify-report.ts";
export { type Capsule, describeCapsule } from "./delegation/capsule.ts";
export type { Work, WorkMode, WorkResult } from "./delegation/delegate-work.ts";
export type {
  Delegated,
  DelegationOutcome,
  DelegationRequest,
} from "./delegation/delegation-request.ts";
export { createPlan, type DelegationPlan } from "./delegation/plan.ts";
export { type Handover, processWorker } from "./delegation/process-worker.ts";
export { reduceRun, replayRun } from "./delegation/reduce-run.ts";
export { type LoopParts, runLoop } from "./delegation/run-loop.ts";
export type { NewRun, Runs } from "./delegation/runs.ts";
export { scopePolicy } from "./delegation/scope-policy.ts";
export { type PlanVerdict, validatePlan } from "./delegation/validate-plan.ts";
export { verifyTools } from "./delegation/verify-tools.ts";
export type { Job, Worker } from "./delegation/worker.ts";
export type { AtPoint, CrashPoint } from "./executor/crash-point.ts";
export { type ImageResult, isImageResult, toModelContent } from "./executor/image-result.ts";
export { type CallResult, orchestrate } from "./executor/orchestrate.ts";
export type { FileRoot } from "./gate/file.ts";
export type { GatePolicy } from "./gate/gate-policy.ts";
export { HOOK_POINTS, type HookAnswer, type HookPoint } from "./gate/hooks.ts";
export { NO_RULES, type Policy, policyHash, type Rule } from "./gate/policy.ts";
export type { ReviewRule } from "./gate/review-rules.ts";
export type { CheckpointHandler } from "./gate/run-checkpoint.ts";
export type { Hook } from "./gate/run-hooks.ts";
export { askUserTool } from "./interactions/ask-user-tool.ts";
export type { Person } from "./interactions/who-may.ts";
export { type Preview, previewHash } from "./model/approval.ts";
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
export { GATE_POINTS, type GatePoint, type Grant } from "./model/grant.ts";
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
} from "./model/interaction.ts";
export { OPERATION_MOVES, type Operation, type OperationStatus } from "./model/operation.ts";
export { parseJson } from "./model/parse-json.ts";
export type { CompletionPromise, Evidence, EvidenceNeed } from "./model/promise.ts";
export type { Question, QuestionAnswer } from "./model/question.ts";
export type { Factor, Requirement, Vote } from "./model/requirement.ts";
export { PHASE_MOVES, PHASES, type Phase, type Run, type RunEvent } from "./model/run.ts";
export type { InputPattern, StandingRule, ValueTest } from "./model/standing-rule.ts";
export { TASK_MOVES, type Task, type TaskEvent } from "./model/task.ts";
export type { Guard, Validator } from "./model/validator.ts";
export { isReviewed, NO_VERDICT, type Severity, type Verdict } from "./model/verdict.ts";
export { describeRollback } from "./operations/describe-rollback.ts";
export { type OperationEvent, onOperation, readLog } from "./operations/log.ts";
export type { RollbackReport } from "./operations/rollback-report.ts";
export { afterRestore, type RestoreOptions, type Voided } from "./port/after-restore.ts";
export type { AttentionOptions, Decoy, Reviewers } from "./port/attention.ts";
export { createSallyport, type OpenSession, type Port } from "./port/create-sallyport.ts";
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
} from "./port/inbox.ts";
export type { SallyportOptions } from "./port/options.ts";
export type { Recovered } from "./port/recover.ts";
export type { CallOptions, Session } from "./port/session.ts";
export type { NewStandingRule, StandingRules } from "./port/standing-rules.ts";
export { startUpkeep, type UpkeepOptions } from "./port/upkeep.ts";
export type { WaitOptions } from "./port/wait-for.ts";
export { type Breaker, createBreaker } from "./staging/circuit.ts";
export { allowAlways } from "./staging/guards/allow-always.ts";
export { tenantDenyGuard } from "./staging/guards/tenant-deny.ts";
export { waitsForUpstreamGuard } from "./staging/guards/waits-for-upstream.ts";
export { createStaging, type Staging, type StagingOptions } from "./staging/staging.ts";
export { claimHold } from "./store/claim-hold.ts";
export { createStore } from "./store/create-store.ts";
export type { By, DecisionQuery, DecisionStore } from "./store/decisions.ts";
export type { Engine } from "./store/engine.ts";
export type { AuditReader, Store, TenantStore } from "./store/store.ts";
export type { ClaimRef, TaskStore } from "./store/tasks.ts";
export { checkClaim } from "./tasks/claim-check.ts";
export { tiesFulfilled } from "./tasks/completion-ties.ts";
export { createTaskList } from "./tasks/create-task-list.ts";
export { startHeartbeat } from "./tasks/heartbeat.ts";
export { exportJsonTasks, importJsonTasks } from "./tasks/json-task-folder.ts";
export { memoryTaskStore } from "./tasks/memory-task-store.ts";
export type { MayComplete, TaskList } from "./tasks/task-list.ts";
export { startWatchdog } from "./tasks/watchdog.ts";
export { type Clock, manualClock, systemClock } from "./util/clock.ts";
