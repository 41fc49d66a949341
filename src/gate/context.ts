// The one object that every step of a call receives.

import type { AuditObserver } from "../audit/observer.ts";
import type { Guard, Tier, Validator } from "../model/decision.ts";
import type { CompiledPolicy } from "../policy/policy.ts";
import type { Hold, OperationStore } from "../store/operations.ts";
import type { TenantStore } from "../store/store.ts";
import type { ClaimRef, TaskStore } from "../store/tasks.ts";
import type { Registry } from "../tools/registry.ts";
import type { Progress } from "../tools/tool.ts";
import type { ResultProcessor } from "../tools/tool-call.ts";
import type { Clock } from "../util/clock.ts";
import type { Random } from "../util/random.ts";
import type { RunningWork } from "../util/running-work.ts";
import type { Timers } from "../util/timers.ts";
import type { BreakerTerms } from "./breaker.ts";
import type { GateDelegations } from "./delegating.ts";
import type { HookContext } from "./hooks.ts";
import type { Judged, SessionFolders } from "./judge.ts";
import type { Offering } from "./offering.ts";
import type { AtPoint, GateOptions } from "./options.ts";
import type { OpenCalls, OpenQuota } from "./propose.ts";

/** The one wiring of a gate, made by `createGate`. Every step is a function of it and of its own arguments. */
export interface GateContext extends ExecutionContext, HookContext {
  /** Its operations are observed, so that no way of executing can forget to report. */
  readonly store: TenantStore;
  /** Where the task list lies: in the store, unless the host has another place for it. */
  readonly tasks: TaskStore;
  /** What must hold of a claim in the transaction that begins an effect; nothing where the tasks lie elsewhere. */
  claimHolds(claim: ClaimRef | undefined): readonly Hold[];
  readonly registry: Registry;
  readonly observer: AuditObserver;
  readonly policy: CompiledPolicy;
  readonly gatePolicies: NonNullable<GateOptions["gatePolicies"]>;
  readonly fileRoots: NonNullable<GateOptions["fileRoots"]>;
  readonly protectedPaths: NonNullable<GateOptions["protectedPaths"]>;
  /** Sessions that the hooks at `session_start` have let in, in this process. */
  readonly started: Set<string>;
  readonly checkpoint: GateOptions["checkpoint"] | undefined;
  readonly reverseThinking: GateOptions["reverseThinking"] | undefined;
  readonly defersTools: boolean;
  readonly offering: Offering;
  readonly checkpointTimeoutMs: number;
  readonly confidenceKey: string | undefined;
  readonly validators: Readonly<Record<Tier, Validator>>;
  readonly guard: Guard;
  readonly reviewTimeoutMs: number;
  readonly reviewRules: NonNullable<GateOptions["review"]>;
  /** Everyone who may decide; undefined: anyone who is not among the requesters. */
  readonly people: GateOptions["people"] | undefined;
  readonly approvalMs: number;
  readonly attention: GateOptions["attention"] | undefined;
  readonly breaker: Required<BreakerTerms> | undefined;
  readonly quota: OpenQuota;
  readonly folders: SessionFolders;
  readonly maxAtOnce: number;
  readonly clock: Clock;
  readonly random: Random;
  newId(): string;
  /** 128 random bits that are used nowhere else. */
  newNonce(): string;
  /** Shape: push; see `Store.onCommit`. */
  onCommit(listener: () => void): () => void;
  /** Shape: push; see `GateOptions.onLedgerProblem`. */
  readonly onLedgerProblem: NonNullable<GateOptions["onLedgerProblem"]>;
  readonly openCalls: OpenCalls;
  /** Counts the answer to one new call, for `Gate.denials`. */
  countAnswer(
    call: { readonly tool: string; readonly agent: string },
    judged: Exclude<Judged, { verdict: "failed" }>,
  ): void;
  /** Set after the rest, because the sessions of sub-agents are made from this context. */
  readonly delegations: GateDelegations;
}

/** The part of the context that executing one call needs. */
export interface ExecutionContext {
  readonly store: { readonly tenant: string; readonly operations: OperationStore };
  readonly timers: Timers;
  /** How long an attempt holds before another process may take over; renewed while the tool works. */
  readonly leaseMs: number;
  /** The tool's own time; the time a person takes to decide is over before it starts. */
  readonly timeoutMs: number;
  readonly processor: ResultProcessor | undefined;
  readonly running: RunningWork<Progress>;
  readonly at: AtPoint;
}
