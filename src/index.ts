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
export { createRedactor, type Redactor, type RedactorOptions } from "./audit/redact.ts";
export { type VerifyOptions, verifyStore, verifyTrail } from "./audit/verify.ts";
export type { VerifyReport } from "./audit/verify-report.ts";
export type { AuditEntry, ChainHead } from "./model/audit-entry.ts";
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
  ERRORS,
  type ErrorCode,
  isSallyportError,
  SallyportError,
} from "./model/errors.ts";
export { parseJson } from "./model/parse-json.ts";
export type { Guard, Validator } from "./model/validator.ts";
export { isReviewed, NO_VERDICT, type Severity, type Verdict } from "./model/verdict.ts";
export { type Breaker, createBreaker } from "./staging/circuit.ts";
export { allowAlways } from "./staging/guards/allow-always.ts";
export { tenantDenyGuard } from "./staging/guards/tenant-deny.ts";
export { waitsForUpstreamGuard } from "./staging/guards/waits-for-upstream.ts";
export { createStaging, type Staging, type StagingOptions } from "./staging/staging.ts";
export { createStore } from "./store/create-store.ts";
export type { By, DecisionQuery, DecisionStore } from "./store/decisions.ts";
export type { Engine } from "./store/engine.ts";
export type { AuditReader, Store, TenantStore } from "./store/store.ts";
export { type Clock, manualClock, systemClock } from "./util/clock.ts";
