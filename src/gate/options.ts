// The options of `createGate`, and what their callbacks receive.

import type { AuditSink, ObserverProblemListener } from "../audit/observer.ts";
import type { Guard, Validator } from "../model/decision.ts";
import type { CallAnswer } from "../model/operation.ts";
import type { CheckpointHandler } from "../policy/before-call.ts";
import type { FileRoot, GatePolicy } from "../policy/decide.ts";
import type { Policy } from "../policy/policy.ts";
import type { ReverseThinkingHandler } from "../policy/reverse-thinking.ts";
import type { ReviewRule } from "../policy/review-rules.ts";
import type { Store } from "../store/store.ts";
import type { TaskStore } from "../store/tasks.ts";
import type { Registry } from "../tools/registry.ts";
import type { Tool } from "../tools/tool.ts";
import type { ResultProcessor } from "../tools/tool-call.ts";
import type { Clock } from "../util/clock.ts";
import type { Random } from "../util/random.ts";
import type { Timers } from "../util/timers.ts";
import type { AttentionOptions } from "./attention.ts";
import type { BreakerTerms } from "./breaker.ts";
import type { GateHook, HookProblem } from "./hooks.ts";
import type { Person } from "./inbox.ts";
import type { QuotaOptions } from "./propose.ts";

/** Every part may be left out; what is left out is replaced by the careful choice, never by the convenient one. */
export interface GateOptions {
  /** Left out: a SQLite file in `.sallyport` of the working directory, which needs `better-sqlite3`. */
  readonly store?: Store;
  /**
   * Where the task list lies. Left out: in the store, where every change of a task is in the trail and a claim is checked in
   * the transaction that begins an effect. Elsewhere a claim is checked just before that, and the trail has no entries.
   */
  readonly tasks?: TaskStore;
  /** Left out: `default`, which is also the one that `sallyport serve` shows. */
  readonly tenant?: string;
  /** A list, or a registry that keeps changing. Left out: an empty registry, `gate.tools`, to register tools in. */
  readonly tools?: readonly Tool[] | Registry;
  /** A review that is left out records "no validator configured" and leaves the decision to a person. */
  readonly validators?: { readonly tech?: Validator; readonly business?: Validator };
  /** An orthogonal yes or no on each move of a decision. Left out: every move that the state table has is allowed. */
  readonly guard?: Guard;
  /** Left out: no rules, so a person is asked about every call of a tool that is not read-only. */
  readonly policy?: Policy;
  /** A call of this process waits for a person. Shape: push; what it throws becomes a process warning. */
  readonly onPending?: (call: OpenCall) => void;
  /**
   * A call that this process reported as pending is over: done, denied or failed, wherever it was decided and executed. An
   * unknown outcome is not an end. Keeps no process alive. Shape: push; what it throws becomes a process warning.
   */
  readonly onSettled?: (call: OpenCall) => void;
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
  /** Functions or programs that are asked, or told, at the points of `HOOK_POINTS`. */
  readonly hooks?: readonly GateHook[];
  /** How long a hook may take that names no time limit of its own; 60 s when left out. */
  readonly hookTimeoutMs?: number;
  /**
   * A hook failed, or objected, at a point where that changes nothing. Shape: push. Left out: it becomes a process warning.
   */
  readonly onHookProblem?: (problem: HookProblem) => void;
  /** Without one, tools that need a checkpoint are refused. `inbox` asks durably: the answer may outlive every connection. */
  readonly checkpoint?: CheckpointHandler | "inbox";
  /**
   * For tools that want reverse thinking: who argues against a call when the agent's own input does not. Without a readable
   * counter-check the call is refused, unless `whenMissing` says `proceed`.
   */
  readonly reverseThinking?: {
    readonly handler?: ReverseThinkingHandler;
    readonly whenMissing?: "refuse" | "proceed";
  };
  /**
   * Offers a few of many tools: above `threshold` (15 when left out) only those of `alwaysLoad` and `tool_search`, with which
   * an agent finds and loads the others. A call of one that is not loaded is answered with "search first", or loads it.
   */
  readonly deferredTools?: {
    readonly threshold?: number;
    readonly alwaysLoad?: readonly string[];
    readonly whenCalled?: "refuse" | "activate";
  };
  /** How long a checkpoint handler may take; 60 s when left out. A late go is none. */
  readonly checkpointTimeoutMs?: number;
  /** How long each validator and the guard may take; 60 s when left out. A late yes is a no. */
  readonly reviewTimeoutMs?: number;
  readonly confidenceKey?: string;
  /** How long a question stays open and an approval is good for. */
  readonly approvalMs?: number;
  /** Who must say yes to what; one person when nothing is said. */
  readonly review?: readonly ReviewRule[];
  /** Everyone who may decide. Left out: anyone who is not among the requesters. */
  readonly people?: readonly Person[];
  /** Decoys among the confirmations, and how many approvals of one person count within an hour. Left out: no checks. */
  readonly attention?: AttentionOptions;
  /**
   * Stops a tool after failures in a row, in every process, until a person closes its breaker (`gate.breakers`). Left out: no
   * tool is stopped.
   */
  readonly breaker?: BreakerTerms;
  /** How much one agent may have waiting for people. */
  readonly quotas?: QuotaOptions;
  readonly leaseMs?: number;
  readonly timeoutMs?: number;
  /** How many calls of one `callAll` run at once; 10 when left out. */
  readonly maxAtOnce?: number;
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

/** A call that waited, or waits, for a person. */
export interface OpenCall {
  readonly sessionId: string;
  readonly agent: string;
  readonly callId: string;
  readonly tool: string;
  readonly key?: string;
  readonly answer: CallAnswer;
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
