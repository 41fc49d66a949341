export {
  AGENT_ROLES,
  type AgentRole,
  type CompletionPromise,
  DELEGATION_MOVES,
  type Delegation,
  type DelegationId,
  type Evidence,
  isReadOnlyRole,
  PHASE_MOVES,
  PHASES,
  type Phase,
  type Run,
  type Scope,
  WRITE_PERMISSIONS,
  type WritePermission,
} from "../model/delegation.ts";
export {
  type Authorisation,
  createGateRunner,
  createPlan,
  type DelegationPlan,
  type DelegationRequest,
  type GateRun,
  type GateRunner,
  type GateRunnerOptions,
  grantAuthorisation,
  type PlanVerdict,
  type ValidateOptions,
  validatePlan,
} from "./plan.ts";
export { type Runs, runLoop } from "./runs.ts";
export { describeCapsule } from "./scope.ts";
export { verifyTools } from "./verify.ts";
export { type Job, processWorker, type Worker, type WorkResult } from "./worker.ts";
