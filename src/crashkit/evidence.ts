import type { AuditEntry } from "../model/audit-entry.ts";
import type { Decision } from "../model/decision.ts";
import type { Interaction } from "../model/interaction.ts";
import type { Operation } from "../model/operation.ts";

/** How a target of production can be spoken to: takes a key once, can be asked what it has done, or neither. */
export type Kind = "keyed" | "probed" | "plain";

/** One line of the world's ledger: a request to change something, as it arrived in production. */
export interface Effect {
  readonly kind: Kind;
  readonly key: string;
  readonly fence: number;
  /** Of the bytes that arrived. */
  readonly inputSha256: string;
  /** False for a key that a keyed target has seen before. */
  readonly applied: boolean;
  /** Milliseconds since 1970, by the world's own clock. */
  readonly at: number;
}

/** What a caller was told, from its own history: it counts from the moment it was told. */
export interface Told {
  readonly operationId: string;
  readonly answer: "done" | "failed" | "unknown";
}

/** Everything that can be compared after (or, in a simulation, during) a run, of one tenant. */
export interface Evidence {
  readonly tenant: string;
  readonly ledger: readonly Effect[];
  readonly trail: readonly AuditEntry[];
  readonly decisions: readonly Decision[];
  readonly operations: readonly Operation[];
  readonly interactions: readonly Interaction[];
  readonly told: readonly Told[];
  /** Faults have stopped and recovery has come to rest: only then may it be asked that everything has ended. */
  readonly isAtRest: boolean;
}

/** One of I1 to I30 of the threat model, as far as evidence can show it broken. */
export interface Invariant {
  readonly id: `I${number}`;
  readonly text: string;
  /** Every violation as a sentence that names the record. */
  check(evidence: Evidence): readonly string[];
}
