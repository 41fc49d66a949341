import type { Decision, DecisionId, DecisionState, SessionId } from "../model/decision.ts";
import type { Instant } from "../model/instant.ts";
import type { Verdict } from "../model/verdict.ts";
import type { Step } from "./engine.ts";
import type { Damaged } from "./readable.ts";

/**
 * Where decisions live. Small on purpose: whoever has a store of their own implements these nine calls and runs
 * `decisionCases` of the conformance suite. Every call is safe under concurrent use, and every move is one atomic write of
 * the new state, its fields and its audit entry. Shape: callback; staging waits for every call.
 */
export interface DecisionStore {
  /**
   * Stores a fresh `pending_tech` draft under an id of the store's own. Throws illegal_transition for any other state and
   * for an empty session, payload_too_large, invalid_input.
   */
  stage(draft: Decision, by?: By, along?: readonly Step[]): Promise<Decision>;
  /** pending_tech → pending_ml or rejected_tech, by the verdict's approved flag. Throws illegal_transition, not_found. */
  updateTechVerdict(id: DecisionId, verdict: Verdict): Promise<Decision>;
  /** pending_ml → approved or rejected_ml. Throws illegal_transition, not_found. */
  updateBizVerdict(id: DecisionId, verdict: Verdict): Promise<Decision>;
  /**
   * approved → executed. On an executed decision it succeeds and answers with what is stored, first proof included.
   * Throws already_final (it failed), illegal_transition, not_found.
   */
  markExecuted(id: DecisionId, proof: unknown, by?: By): Promise<Decision>;
  /** approved → failed. The mirror image: the first reason stays. */
  markFailed(id: DecisionId, reason: string, by?: By): Promise<Decision>;
  /** Throws not_found. */
  get(id: DecisionId): Promise<Decision>;
  /** Oldest first, filters combined with AND. A record that cannot be read hides itself alone; `get` says what is wrong with it. */
  list(query?: DecisionQuery): Promise<readonly Decision[]>;
  /** Refuses an empty session with invalid_input, because "all sessions" would be a leak. */
  listBySession(sessionId: SessionId): Promise<readonly Decision[]>;
  /** Decisions that entered this state at least so long ago, by the store's clock; oldest first, in pages like `list`. */
  listStuck(
    state: DecisionState,
    forAtLeastMs: number,
    page?: DecisionPage,
  ): Promise<readonly Decision[]>;
}

/** Who does it, for the trail. */
export interface By {
  readonly actor: string;
}

export interface DecisionPage {
  /** Only those staged after this one. Throws invalid_input when there is no such decision. */
  readonly after?: DecisionId;
  /** Never more than `MAX_LIST`; fewer than asked for mean that there are no more. */
  readonly limit?: number;
  /** Told of every record that was passed over because it cannot be read. Shape: push. */
  readonly onDamaged?: (damaged: Damaged) => void;
}

/** Empty, zero or missing means: do not filter by this. */
export interface DecisionQuery extends DecisionPage {
  readonly sessionId?: SessionId;
  readonly states?: readonly DecisionState[];
  /** Updated (not created) at this moment or later. */
  readonly since?: Instant;
}

export const MAX_LIST = 1_000;
