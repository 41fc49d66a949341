import type { AuditSink, ObserverProblemListener } from "../audit/observer.ts";
import type { Guard, Validator } from "../model/verdict.ts";
import type { CheckpointHandler } from "../policy/checkpoint.ts";
import type { GatePolicy } from "../policy/gate-policy.ts";
import type { Hook } from "../policy/hooks.ts";
import type { FileRoot } from "../policy/permission.ts";
import type { Policy } from "../policy/policy.ts";
import type { ReviewRule } from "../policy/review-rules.ts";
import type { Store } from "../store/store.ts";
import type { Registry } from "../tools/registry.ts";
import type { ResultProcessor } from "../tools/result-processor.ts";
import type { Tool } from "../tools/tool.ts";
import type { Clock } from "../util/clock.ts";
import type { Random } from "../util/random.ts";
import type { Timers } from "../util/timers.ts";
import type { AttentionOptions } from "./attention.ts";
import type { QuotaOptions } from "./open-quota.ts";
import type { Person } from "./who-may.ts";

export interface GateOptions {
  readonly store: Store;
  readonly tenant: string;
  /** A list, or a registry that keeps changing. */
  readonly tools: readonly Tool[] | Registry;
  readonly validators: { readonly tech: Validator; readonly business: Validator };
  /** "No dependency rules" is written out: `allowAlways`. */
  readonly guard: Guard;
  /** "No rules" is written out: `NO_RULES`. Then everything but read-only tools is asked about. */
  readonly policy: Policy;
  /** Folders that file tools may use without a rule. */
  readonly fileRoots?: readonly FileRoot[];
  /**
   * Folders that callers from outside may work in: over HTTP a session's `workingDirectory` must be one of them or below
   * one, and a delegation from a session without a folder must name one of them. None when left out. The host program itself
   * is trusted and may open sessions anywhere. Absolute paths; links are resolved before they are compared.
   */
  readonly sessionFolders?: readonly string[];
  /**
   * Folders and files with the gate's own records and keys, as absolute paths. They are denied to every call of an agent, and
   * no rule, grant or person can lift that. A folder named `.sallyport` is denied without being listed.
   */
  readonly protectedPaths?: readonly string[];
  readonly gatePolicies?: readonly GatePolicy[];
  /** Carrying out what was approved during a stop failed after a resume. Shape: push; the next recovery tries again. */
  readonly onResumeProblem?: (error: unknown) => void;
  /** An evaluation of a gate policy could not be recorded. Shape: push; its decision stands. */
  readonly onLedgerProblem?: (problem: {
    readonly traceId: string;
    readonly error: unknown;
  }) => void;
  readonly hooks?: readonly Hook<HookEvent>[];
  /** Without one, tools that need a checkpoint are refused. `inbox` asks durably: the answer may outlive every connection. */
  readonly checkpoint?: CheckpointHandler | "inbox";
  readonly confidenceKey?: string;
  /** How long a question stays open and an approval is good for. */
  readonly approvalMs?: number;
  /** Who must say yes to what; one person when nothing is said. */
  readonly review?: readonly ReviewRule[];
  /** Everyone who may decide. Left out: anyone who is not among the requesters. */
  readonly people?: readonly Person[];
  /** Decoys among the confirmations, and how many approvals of one person count within an hour. Left out: no checks. */
  readonly attention?: AttentionOptions;
  /** How much one agent may have waiting for people. */
  readonly quotas?: QuotaOptions;
  readonly leaseMs?: number;
  readonly timeoutMs?: number;
  readonly processor?: ResultProcessor;
  /** The host's own log of what tools did, beside the audit log. */
  readonly audit?: {
    readonly sinks: readonly AuditSink[];
    readonly onProblem: ObserverProblemListener;
  };
  readonly clock?: Clock;
  readonly timers?: Timers;
  readonly random?: Random;
  /** Told where each call is on its way, so that tests can cut a process off there. */
  readonly at?: AtPoint;
}

/** What hooks around a call receive. */
export interface HookEvent {
  readonly tool: string;
  readonly sessionId: string;
  readonly callId: string;
}

/** The steps that are one transaction each (a yes of S2b, the business review, is stored with the person's). */
type Committed = "S1" | "S2a" | "S2b" | "S3" | "S4" | "S5" | "S7";

/**
 * Where a process may be killed in the life of a call: propose, technical and business review, show, decide, start, act,
 * settle, answer.
 */
export type CrashPoint =
  | `${Committed}.before`
  | `${Committed}.after`
  | "S6.before"
  | "S6.after"
  | "S8.before";

/** Called whenever a call passes a point. For crash tests; nothing may depend on it. */
export type AtPoint = (point: CrashPoint) => void;
