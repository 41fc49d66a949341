import type { Preview } from "../model/approval.ts";
import type { AuditEntry } from "../model/audit-entry.ts";
import type { Decision } from "../model/decision.ts";
import type { Interaction } from "../model/interaction.ts";
import type { Operation } from "../model/operation.ts";
import type { ContentProof } from "../store/content-proof.ts";

/** How a target of production can be spoken to: takes a key once, can be asked what it has done, or neither. */
export type Kind = "keyed" | "probed" | "plain";

/** One line of the world's ledger: a request to change something, as it arrived in production. */
export interface Effect {
  readonly kind: Kind;
  readonly key: string;
  readonly fence: number;
  /** Of the bytes that arrived: the input in canonical form. */
  readonly inputSha256: string;
  /** False for what the target did not take: a key that it has seen before, a fence older than one it has seen. */
  readonly applied: boolean;
  /** Milliseconds since 1970, by the world's own clock. */
  readonly at: number;
}

/** What a caller was told, from its own history: it counts from the moment it was told. */
export type Told =
  | { readonly operationId: string; readonly answer: "done" | "failed" | "unknown" }
  /** Put before people, or what they said to it. */
  | { readonly decisionId: string; readonly answer: "pending" | "approved" | "rejected" };

/** Everything that can be compared after (or, in a simulation, during) a run, of one tenant. */
export interface Evidence {
  readonly tenant: string;
  readonly ledger: readonly Effect[];
  readonly trail: readonly AuditEntry[];
  /** How the trail proves contents; undefined when the store has no key for it. */
  readonly contentProof: ContentProof | undefined;
  readonly decisions: readonly Decision[];
  /** What reviewers were shown. */
  readonly previews: readonly Preview[];
  readonly operations: readonly Operation[];
  readonly interactions: readonly Interaction[];
  readonly told: readonly Told[];
  /** Ids of calls that were asked for under a key, no two of them the same. However often it was asked for, each is one call. */
  readonly keyed?: readonly string[];
  /** Faults have stopped and recovery has come to rest: only then may it be asked that everything has ended. */
  readonly isAtRest: boolean;
  /** Whether a tool may change something without anybody being asked. Left out: nobody can tell, and it is not looked at. */
  readonly mayRunAlone?: (tool: string) => boolean;
  /** How far the world's clock may be behind the store's; 0 when they are the same. */
  readonly clockSkewMs?: number;
}

/** One of I1 to I30 of the threat model, as far as evidence can show it broken. */
export interface Invariant {
  readonly id: `I${number}`;
  readonly text: string;
  /** Every violation as a sentence that names the record. */
  check(evidence: Evidence): readonly string[];
}
