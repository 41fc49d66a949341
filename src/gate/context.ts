import type { AuditObserver } from "../audit/observer.ts";
import type { Diff } from "../model/decision.ts";
import type { Verdict } from "../model/verdict.ts";
import type { ReviewRule } from "../policy/review-rules.ts";
import type { TenantStore } from "../store/store.ts";
import type { Timers } from "../util/timers.ts";
import type { Attention } from "./attention.ts";
import type { AtPoint } from "./crash-point.ts";
import type { GateDelegations } from "./delegating.ts";
import type { Executor } from "./execute.ts";
import type { JudgeParts } from "./judge.ts";
import type { OpenQuota } from "./open-quota.ts";
import type { ConsultGuard, Staging } from "./review.ts";
import type { DecideParts } from "./run.ts";
import type { UndoDispatch } from "./undo.ts";
import type { Person } from "./who-may.ts";

/** The parts as the port has wired them; sessions walk through these and know no other way. */
export interface GateContext {
  readonly store: TenantStore;
  readonly judging: JudgeParts;
  readonly staging: Staging;
  readonly validateBusiness: (diff: Diff) => Promise<Verdict>;
  /** Asked before a person's yes is written, as before every other move; undefined where "no guard" was written out. */
  readonly consult: ConsultGuard | undefined;
  /** A function, because it looks at questions that it asks through these rooms; undefined where nobody wants it. */
  attention(): Attention | undefined;
  readonly quota: OpenQuota;
  readonly executor: Executor;
  readonly observer: AuditObserver;
  readonly deciding: DecideParts;
  /** Takes back on somebody's word; those named here asked for the calls and cannot consent to anything. */
  undoFor(chain: readonly string[]): UndoDispatch;
  readonly approvalMs: number;
  readonly reviewRules: readonly ReviewRule[];
  /** Everybody who may decide; undefined: whoever is not in the chain of the asker. */
  readonly people: readonly Person[] | undefined;
  readonly policyVersion: string;
  readonly timers: Timers;
  /** Shape: push; see `Store.onCommit`. */
  onCommit(listener: () => void): () => void;
  /** A function, because sub-agents get sessions that walk through these rooms again. */
  delegations(): GateDelegations;
  readonly at: AtPoint;
  newId(): string;
  /** 128 random bits that stand nowhere else. */
  newNonce(): string;
}
