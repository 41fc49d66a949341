import {
  DECISIONS,
  type Decision,
  type DecisionId,
  type DecisionState,
  isDecisionState,
  isLegal,
  type SessionId,
  TIERS,
  type Tier,
} from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { encoded } from "../model/field.ts";
import { checkName, type Instant, isName } from "../model/names.ts";
import type { Verdict } from "../model/verdict.ts";
import { fromIso } from "../util/clock.ts";
import { invariant } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject } from "../util/json.ts";
import {
  checkDraft,
  checkReason,
  checkVerdict,
  decisionOf,
  rowOfDraft,
  shownMetadata,
  shownVerdict,
} from "./decision-rows.ts";
import {
  type Cell,
  type Comparison,
  type Conditions,
  type EventPlan,
  NOW,
  type Step,
  type Values,
} from "./engine.ts";
import { type Damaged, readable } from "./readable.ts";
import type { TenantEngine } from "./tenant-engine.ts";

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

/** One move of a decision as data, to be written alone or together with what caused it. */
export interface DecisionMove {
  readonly id: DecisionId;
  readonly from: DecisionState;
  readonly to: DecisionState;
  /** The WHERE decides: of two racing moves one finds the state it expects. */
  readonly step: Step;
  /** What to tell when the move is the change's step with this index. */
  event(step: number): EventPlan;
}

/** Throws invalid_input for a verdict that is none. */
export function reviewMove(tier: Tier, id: DecisionId, verdict: Verdict): DecisionMove {
  checkVerdict(verdict);
  const { from, yes, no } = TIERS[tier];
  const column = tier === "tech" ? "tech_verdict" : "biz_verdict";
  return moveOf(id, from, verdict.approved ? yes : no, {
    set: {
      [column]: encoded("verdict", { ...verdict }),
      // Only a technical yes leads to a question; after any other verdict nobody has to be asked.
      ...(tier === "tech" && verdict.approved ? {} : { unasked: null }),
    },
    type: "decision.reviewed",
    actor: `validator:${verdict.validator}`,
    data: { tier, verdict: shownVerdict(verdict) },
  });
}

/** Throws invalid_input for a proof that is no data. */
export function executedMove(id: DecisionId, proof: unknown, actor: string): DecisionMove {
  const stored = encoded("proof", proof);
  return moveOf(id, "approved", "executed", {
    set: { execution_proof: stored },
    type: "decision.executed",
    actor,
    data: {},
    hashes: { proof: sha256Hex(stored) },
  });
}

/** Throws invalid_input for a reason that is no text. */
export function failedMove(id: DecisionId, reason: string, actor: string): DecisionMove {
  checkReason(reason);
  return moveOf(id, "approved", "failed", {
    set: { execution_error: encoded("reason", reason) },
    type: "decision.failed",
    actor,
    data: { reason: reason.toWellFormed() },
  });
}

interface MoveFacts {
  readonly set: Values;
  readonly type: string;
  readonly actor: string;
  readonly data: JsonObject;
  readonly hashes?: EventPlan["hashes"];
}

function moveOf(
  id: DecisionId,
  from: DecisionState,
  to: DecisionState,
  { set, type, actor, data, hashes }: MoveFacts,
): DecisionMove {
  invariant(isLegal(from, to), `${from} to ${to} is not in the table of moves`);
  return {
    id,
    from,
    to,
    step: {
      op: "update",
      table: DECISIONS,
      id,
      where: { state: from },
      set: { ...set, state: to, updated_at: NOW },
    },
    event: (index) => ({
      type,
      subject: id,
      session: { left: "session_id", step: index },
      actor,
      data: { from, to, ...data },
      ...(hashes === undefined ? {} : { hashes }),
    }),
  };
}

const CALLER: By = { actor: "caller" };

/** Decisions over any engine. The rules live here once; the engine only compares and writes. */
export function engineDecisions(engine: TenantEngine): DecisionStore {
  return {
    async stage(draft, by = CALLER, others = []) {
      checkDraft(draft);
      checkName("actor", by.actor);
      const id = engine.newId();
      const data = {
        to: draft.state,
        source_tool: draft.diff.sourceTool,
        raw_bytes: draft.diff.raw.byteLength,
        metadata: shownMetadata(draft.metadata),
        ...(draft.origin === "port" ? { origin: "port" } : {}),
      };
      const { sessionId: session } = draft;
      const hashes = { raw: sha256Hex(draft.diff.raw) };
      const { actor } = by;
      const result = await engine.commit({
        steps: [{ op: "insert", table: DECISIONS, id, row: rowOfDraft(draft) }, ...others],
        events: [{ type: "decision.staged", subject: id, session, actor, data, hashes }],
      });
      const row = result.committed ? result.rows[0] : undefined;
      invariant(row !== undefined, `a fresh id was taken: ${id}`);
      return decisionOf(row);
    },

    updateTechVerdict: (id, verdict) => move(engine, () => reviewMove("tech", id, verdict), stuck),
    updateBizVerdict: (id, verdict) =>
      move(engine, () => reviewMove("business", id, verdict), stuck),
    markExecuted: (id, proof, by = CALLER) =>
      move(engine, () => executedMove(id, proof, actorOf(by)), closedBefore),
    markFailed: (id, reason, by = CALLER) =>
      move(engine, () => failedMove(id, reason, actorOf(by)), closedBefore),

    async get(id) {
      const row = isName(id) ? await engine.get(DECISIONS, id) : undefined;
      if (row === undefined) throw missing(id);
      return decisionOf(row);
    },

    list: (query = {}) => find(engine, query),

    async listBySession(sessionId) {
      checkName("session id", sessionId);
      return find(engine, { sessionId });
    },

    async listStuck(state, forAtLeastMs, page = {}) {
      checkStates([state]);
      if (!(forAtLeastMs >= 0)) {
        const hint = "Give the age in milliseconds, zero or more.";
        throw new SallyportError("invalid_input", { what: "duration", hint });
      }
      const age = Math.min(Math.ceil(forAtLeastMs), 2 ** 50);
      const where = { state, updated_at: { atMost: { nowPlusMs: -age } } };
      return paged(engine, where, page);
    },
  };
}

function actorOf({ actor }: By): string {
  checkName("actor", actor);
  return actor;
}

/** What to make of a decision that could not be moved: hand it back, or throw. */
type Unmoved = (decision: Decision, move: DecisionMove) => Decision;

const stuck: Unmoved = ({ id, state }, { to }) => {
  throw illegal(id, state, to);
};

/** Reporting the same outcome twice is a repeat, not a mistake: the first report stays and is handed back. */
const closedBefore: Unmoved = (decision, { to }) => {
  const { id, state } = decision;
  if (state === to) return decision;
  if (state !== "executed" && state !== "failed") throw illegal(id, state, to);
  const hint = "It was reported with the other outcome before, and that report stands.";
  throw new SallyportError("already_final", { id, state, to, hint });
};

/** Of two racing moves one is written; the other learns what is there now. */
async function move(
  engine: TenantEngine,
  plan: () => DecisionMove,
  unmoved: Unmoved,
): Promise<Decision> {
  const planned = plan();
  const { id, from, to, step, event } = planned;
  if (!isName(id)) throw missing(id);
  for (;;) {
    const result = await engine.commit({ steps: [step], events: [event(0)] });
    const row = result.committed ? result.rows[0] : result.current;
    if (row === undefined) throw missing(id);
    const state = row["state"];
    if (!isDecisionState(state)) throw illegal(id, String(state), to);
    const decision = decisionOf(row);
    if (result.committed) return decision;
    // It was elsewhere when the write looked and arrived by the time we read it: look again, moves go only forward.
    if (decision.state !== from) return unmoved(decision, planned);
  }
}

async function find(engine: TenantEngine, query: DecisionQuery): Promise<readonly Decision[]> {
  const where: Record<string, Cell | Comparison> = {};
  if (query.sessionId) {
    checkName("session id", query.sessionId);
    where["session_id"] = query.sessionId;
  }
  if (query.states !== undefined && query.states.length > 0) {
    checkStates(query.states);
    where["state"] = { oneOf: query.states };
  }
  if (query.since) where["updated_at"] = { atLeast: since(query.since) };
  return paged(engine, where, query);
}

async function paged(
  engine: TenantEngine,
  where: Conditions,
  { after, limit = 0, onDamaged }: DecisionPage,
): Promise<readonly Decision[]> {
  if (!Number.isInteger(limit)) {
    const hint = "Give a whole number, or 0 for as many as the store hands out at once.";
    throw new SallyportError("invalid_input", { what: "limit", hint });
  }
  const query = {
    where,
    limit: limit > 0 ? Math.min(limit, MAX_LIST) : MAX_LIST,
    ...(after ? { afterOrd: await placeOf(engine, after) } : {}),
  };
  return readable(engine, DECISIONS, query, decisionOf, onDamaged);
}

async function placeOf(engine: TenantEngine, id: DecisionId): Promise<number> {
  const row = isName(id) ? await engine.get(DECISIONS, id) : undefined;
  if (row !== undefined) return Number(row["ord"]);
  const hint = "Give the id of a decision of this tenant.";
  throw new SallyportError("invalid_input", { what: "after", hint });
}

function since(instant: string): number {
  try {
    return fromIso(instant);
  } catch (cause) {
    const hint = "Write the moment as 2026-11-15T06:00:00.000Z.";
    throw new SallyportError("invalid_input", { what: "since", hint }, cause);
  }
}

function checkStates(states: readonly string[]): void {
  const unknown = states.find((state) => !isDecisionState(state));
  if (unknown === undefined) return;
  const hint = "Use one of the seven state names.";
  throw new SallyportError("invalid_input", { what: "state", unknown: String(unknown), hint });
}

function missing(id: DecisionId): SallyportError {
  const hint = "Check the id and the tenant; ids of one tenant are unknown to another.";
  return new SallyportError("not_found", { id: String(id), hint });
}

function illegal(id: DecisionId, from: string, to: DecisionState): SallyportError {
  const hint = "Read the decision again: somebody moved it first, or it was never there.";
  return new SallyportError("illegal_transition", { id, from, to, hint });
}
