import type { DecisionId, SessionId } from "../model/decision.ts";
import {
  OPERATIONS,
  type Operation,
  type OperationId,
  type RecordedUndo,
} from "../model/operation.ts";
import type { DecisionMove } from "./decisions.ts";
import { type Along, NOW, type Step, type Values } from "./engine.ts";

/** What was done and how to take it back. Every call is one transaction with its audit entries. */
export interface OperationStore {
  /**
   * Records the intent, before anything happens. Refuses when the tenant is stopped, when the decision behind it is not
   * approved with this very hash or has expired, and when it was used up before.
   */
  start(intent: Intent): Promise<StartAnswer>;
  /** Records the outcome, if the fence is still ours. With it, in the same transaction, what the outcome brings about. */
  settle(id: OperationId, settlement: Settlement): Promise<SettleAnswer>;
  /** Takes over an operation whose lease ran out, with a new fence: undefined when somebody was faster, or all is stopped. */
  takeOver(
    id: OperationId,
    leaseMs: number,
    actor: string,
    holds?: readonly Hold[],
  ): Promise<Operation | undefined>;
  /**
   * A person says that an unknown one did not happen and should be tried once more, with a new fence. Undefined when it is
   * not unknown any more, when what goes along does not hold, or all is stopped.
   */
  reopen(id: OperationId, again: Reopening): Promise<Operation | undefined>;
  /**
   * A new attempt by who has it already, with a new fence, before its tool is asked or called once more. Undefined when
   * somebody else has it, when what goes along does not hold, or all is stopped.
   */
  tryAgain(id: OperationId, fence: number, again: Reopening): Promise<Operation | undefined>;
  /**
   * Before a call whose intent was answered late: renews the lease if the operation is still held, nothing is stopped and no
   * delegation behind it has ended. Undefined otherwise; then the tool must not be called.
   */
  confirm(id: OperationId, fence: number, again: Reopening): Promise<Operation | undefined>;
  /** Makes the lease longer while the work goes on; false when the fence moved. */
  renew(id: OperationId, fence: number, leaseMs: number): Promise<boolean>;
  /** Throws not_found. */
  get(id: OperationId): Promise<Operation>;
  /** All of them, however many, oldest first. */
  listBySession(sessionId: SessionId, narrow?: Narrow): Promise<readonly Operation[]>;
  /** One page, newest first. */
  listNewest(
    sessionId: SessionId,
    page: { readonly before?: number; readonly limit: number },
  ): Promise<NewestPage>;
  /** Started operations whose lease ran out by the store's clock; with `held`, also those whose lease did not. */
  listAbandoned(limit: number, held?: "held"): Promise<readonly Operation[]>;
}

/** A part of a session: one message, or one decision. */
export interface Narrow {
  readonly messageId?: string;
  readonly decisionId?: DecisionId;
  /** Leaves out what only read and has nothing to take back. */
  readonly without?: "reads";
}

export interface NewestPage {
  readonly operations: readonly Operation[];
  /** The `before` of the next page; undefined at the end. */
  readonly next: number | undefined;
}

export interface Intent {
  readonly id: OperationId;
  readonly sessionId: SessionId;
  readonly messageId: string;
  readonly callId: string;
  readonly turn: number;
  readonly tool: string;
  /** The tool's declared effect: read, write, external or empty. */
  readonly effect: string;
  readonly definitionHash: string;
  readonly input: string;
  readonly workingDirectory: string;
  readonly chain?: readonly string[];
  readonly step: number;
  readonly undoOf: OperationId | "";
  /** The decision it uses up and the hash that was approved; undefined when the gate allowed it by itself. */
  readonly approval: { readonly decisionId: DecisionId; readonly hash: string } | undefined;
  /** What else must hold in the transaction that writes the intent: a standing rule, a claim, a delegation. */
  readonly holds?: readonly Hold[];
  /** What allowed it without a person, for the trail. */
  readonly allowedBy?: string;
  readonly leaseMs: number;
  readonly actor: string;
}

/** A step that looks, or counts while it looks, and what its failing means. */
export interface Hold {
  readonly refusal: StartRefusal;
  readonly step: Step & { readonly op: "require" | "update" };
}

export interface Reopening {
  readonly leaseMs: number;
  readonly actor: string;
  readonly along: readonly Along[];
}

export type StartAnswer =
  | { readonly started: true; readonly operation: Operation }
  | { readonly started: false; readonly reason: StartRefusal; readonly operation?: Operation };

/** `used_up` comes with the operation that used it up. */
export type StartRefusal =
  | "stopped"
  | "not_approved"
  | "expired_or_changed"
  | "rule_ended"
  | "claim_lost"
  | "delegation_ended"
  /** Somebody else is taking back the calls before it, or carries out the one after it. */
  | "overtaken"
  | "restored"
  | "used_up";

export interface Settlement {
  readonly fence: number;
  readonly outcome: Outcome;
  /** The decision that this outcome closes. */
  readonly closes?: DecisionMove;
  /** The operation that this one has taken back. */
  readonly tookBack?: OperationId;
  /** What taking that back has brought back as well. */
  readonly broughtBack?: readonly BroughtBack[];
  /** What else is written with it: the question about a lost outcome, or the answer to it. */
  readonly along?: readonly Along[];
  readonly actor: string;
}

/**
 * An earlier operation whose target an undo has brought back to what that operation had left. Where versions are counted
 * the target has a new one all the same, and it is from now on the one that nobody must have changed.
 */
export interface BroughtBack {
  readonly id: OperationId;
  readonly from: string;
  readonly to: string;
}

export type Outcome =
  | {
      readonly status: "success";
      readonly output: string;
      readonly truncated: boolean;
      readonly storedPath: string;
      readonly undo: RecordedUndo | undefined;
      readonly stateVersion: string;
    }
  | {
      readonly status: "failed";
      readonly error: string;
      readonly output: string;
      readonly truncated?: boolean;
      readonly storedPath?: string;
      /** How to undo what it did all the same; undefined for a call that changed nothing. */
      readonly undo?: RecordedUndo | undefined;
      readonly stateVersion?: string;
    }
  | { readonly status: "unknown"; readonly error: string };

/** Not settled: the fence moved or it was settled before; the operation as it is now says which. */
export type SettleAnswer =
  | { readonly settled: true; readonly operation: Operation }
  | { readonly settled: false; readonly operation: Operation };

export function rowOfIntent(intent: Intent): Values {
  return OPERATIONS.row({
    ...intent,
    chain: intent.chain ?? [],
    decisionId: intent.approval?.decisionId ?? "",
    status: "started",
    attempt: 1,
    fence: 1,
    leaseUntil: { nowPlusMs: intent.leaseMs },
    truncated: false,
    createdAt: NOW,
    updatedAt: NOW,
  });
}

export function rowOfOutcome(outcome: Outcome): Values {
  const { status } = outcome;
  if (status === "unknown") return OPERATIONS.cells({ ...outcome, updatedAt: NOW });
  const { output, truncated = false, storedPath = "", undo, stateVersion = "" } = outcome;
  const done = { status, output, truncated, storedPath, updatedAt: NOW };
  if (status === "success") return OPERATIONS.cells({ ...done, undo: undo ?? null, stateVersion });
  const undoable = undo === undefined ? {} : { undo, stateVersion };
  return OPERATIONS.cells({ ...done, error: outcome.error, ...undoable });
}
