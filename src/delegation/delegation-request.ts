import type { SessionId } from "../model/decision.ts";
import type { Delegation, Role, WritePermission } from "../model/delegation.ts";
import type { CompletionPromise } from "../model/promise.ts";
import type { Capsule } from "./capsule.ts";
import type { ScopeRequest } from "./scope.ts";
import type { PlanVerdict } from "./validate-plan.ts";

/** Who delegates. */
export interface Parent {
  readonly sessionId: SessionId;
  /** The agent, then whoever delegated to it. */
  readonly agents: readonly string[];
  /** The person on whose behalf it acts. */
  readonly owner?: string;
  readonly workingDirectory: string;
}

/** What somebody wants to hand over, and to whom. */
export interface DelegationRequest extends ScopeRequest {
  readonly agent: string;
  readonly role: Role;
  readonly task: string;
  /** All that the sub-agent will know. */
  readonly capsule: string;
  /** What done means: a new promise, or the id of one that the run has given. */
  readonly promise: CompletionPromise | string;
  readonly writePermission?: WritePermission;
  /** The parent's when left out; otherwise a folder inside the parent's. */
  readonly workingDirectory?: string;
}

/** What became of a request, always as a value. */
export type Delegated =
  | {
      readonly answer: "delegated";
      readonly delegation: Delegation;
      readonly capsule: Capsule;
      /** Whoever has it may work and report as the sub-agent. It is shown once and not stored. */
      readonly token: string;
      readonly verdict: PlanVerdict;
    }
  /** Nothing was started or written. */
  | {
      readonly answer: "dry_run";
      readonly capsule: Capsule;
      readonly text: string;
      readonly verdict: PlanVerdict;
    }
  | { readonly answer: "denied"; readonly text: string; readonly verdict: PlanVerdict };

/** What a delegation led to, with everything it is bound to. */
export interface DelegationOutcome {
  readonly delegationId: Delegation["id"];
  readonly planId: string;
  readonly traceId: string;
  readonly promiseId: string;
  readonly state: Delegation["state"];
  readonly promiseMet: boolean;
  /** Names of the evidence that is missing. */
  readonly missing: readonly string[];
  readonly output: string;
  readonly reason: string;
}
