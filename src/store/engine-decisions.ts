import {
  type Decision,
  type DecisionId,
  type DecisionState,
  isDecisionState,
  isLegal,
  TIERS,
  type Tier,
} from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName, isName } from "../model/names.ts";
import type { Verdict } from "../model/verdict.ts";
import { fromIso } from "../util/clock.ts";
import { sha256Hex } from "../util/hash.ts";
import { invariant } from "../util/invariant.ts";
import type { JsonObject } from "../util/json.ts";
import {
  checkDraft,
  checkReason,
  checkVerdict,
  shownMetadata,
  shownVerdict,
} from "./decision-checks.ts";
import { DECISIONS, decisionOf, encoded, rowOfDraft } from "./decision-rows.ts";
import { type By, type DecisionQuery, type DecisionStore, MAX_LIST } from "./decisions.ts";
import { type Cell, type Comparison, NOW, type Values } from "./engine.ts";
import type { TenantEngine } from "./tenant-engine.ts";

const CALLER: By = { actor: "caller" };

/** Decisions over any engine. The rules live here once; the engine only compares and writes. */
export function engineDecisions(engine: TenantEngine): DecisionStore {
  return {
    async stage(draft, by = CALLER) {
      checkDraft(draft);
      checkName("actor", by.actor);
      const id = engine.newId();
      const data = {
        to: draft.state,
        source_tool: draft.diff.sourceTool,
        raw_sha256: sha256Hex(draft.diff.raw),
        raw_bytes: draft.diff.raw.byteLength,
        metadata: shownMetadata(draft.metadata),
      };
      const { sessionId } = draft;
      const result = await engine.commit({
        steps: [{ op: "insert", table: DECISIONS, id, row: rowOfDraft(draft) }],
        events: () => [
          { type: "decision.staged", subject: id, session: sessionId, actor: by.actor, data },
        ],
      });
      const row = result.committed ? result.rows[0] : undefined;
      invariant(row !== undefined, `a fresh id was taken: ${id}`);
      return decisionOf(row);
    },

    updateTechVerdict: (id, verdict) => review(engine, "tech", id, verdict),
    updateBizVerdict: (id, verdict) => review(engine, "business", id, verdict),

    async markExecuted(id, proof, by = CALLER) {
      checkName("actor", by.actor);
      const stored = encoded("proof", proof);
      return close(engine, id, {
        from: "approved",
        to: "executed",
        set: { execution_proof: stored },
        type: "decision.executed",
        actor: by.actor,
        data: { proof_sha256: sha256Hex(stored) },
      });
    },

    async markFailed(id, reason, by = CALLER) {
      checkName("actor", by.actor);
      checkReason(reason);
      return close(engine, id, {
        from: "approved",
        to: "failed",
        set: { execution_error: encoded("reason", reason) },
        type: "decision.failed",
        actor: by.actor,
        data: { reason: reason.toWellFormed() },
      });
    },

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

    async listStuck(state, forAtLeastMs) {
      checkStates([state]);
      if (!(forAtLeastMs >= 0)) {
        const hint = "Give the age in milliseconds, zero or more.";
        throw new SallyportError("invalid_input", { what: "duration", hint });
      }
      const age = Math.min(Math.ceil(forAtLeastMs), 2 ** 50);
      const where = { state, updated_at: { atMost: { nowPlusMs: -age } } };
      return (await engine.find(DECISIONS, { where, limit: MAX_LIST })).map(decisionOf);
    },
  };
}

interface Move {
  readonly from: DecisionState;
  readonly to: DecisionState;
  readonly set: Values;
  readonly type: string;
  readonly actor: string;
  readonly data: JsonObject;
}

async function review(
  engine: TenantEngine,
  tier: Tier,
  id: DecisionId,
  verdict: Verdict,
): Promise<Decision> {
  checkVerdict(verdict);
  const { from, yes, no } = TIERS[tier];
  const to = verdict.approved ? yes : no;
  const { decision, moved } = await move(engine, id, {
    from,
    to,
    set: { [tier === "tech" ? "tech_verdict" : "biz_verdict"]: encoded("verdict", { ...verdict }) },
    type: "decision.reviewed",
    actor: `validator:${verdict.validator.toWellFormed()}`,
    data: { tier, verdict: shownVerdict(verdict) },
  });
  if (!moved) throw illegal(id, decision.state, to);
  return decision;
}

/** Reporting the same outcome twice is a repeat, not a mistake: the first report stays and is handed back. */
async function close(engine: TenantEngine, id: DecisionId, report: Move): Promise<Decision> {
  const { decision, moved } = await move(engine, id, report);
  if (moved || decision.state === report.to) return decision;
  if (decision.state === "executed" || decision.state === "failed") {
    const hint = "It was reported with the other outcome before, and that report stands.";
    throw new SallyportError("already_final", { id, state: decision.state, to: report.to, hint });
  }
  throw illegal(id, decision.state, report.to);
}

/** The WHERE decides: of two racing moves one finds the state it expects, the other learns what is there now. */
async function move(
  engine: TenantEngine,
  id: DecisionId,
  { from, to, set, type, actor, data }: Move,
): Promise<{ decision: Decision; moved: boolean }> {
  invariant(isLegal(from, to), `${from} to ${to} is not in the table of moves`);
  if (!isName(id)) throw missing(id);
  for (;;) {
    const result = await engine.commit({
      steps: [
        {
          op: "update",
          table: DECISIONS,
          id,
          where: { state: from },
          set: { ...set, state: to, updated_at: NOW },
        },
      ],
      events: ([row]) => [
        {
          type,
          subject: id,
          session: String(row?.["session_id"]),
          actor,
          data: { from, to, ...data },
        },
      ],
    });
    const row = result.committed ? result.rows[0] : result.current;
    if (row === undefined) throw missing(id);
    const state = row["state"];
    if (!isDecisionState(state)) throw illegal(id, String(state), to);
    const decision = decisionOf(row);
    // It was elsewhere when the write looked and arrived by the time we read it: look again, moves go only forward.
    if (!result.committed && decision.state === from) continue;
    return { decision, moved: result.committed };
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
  const { limit = 0 } = query;
  if (!Number.isInteger(limit)) {
    const hint = "Give a whole number, or 0 for as many as the store hands out at once.";
    throw new SallyportError("invalid_input", { what: "limit", hint });
  }
  const rows = await engine.find(DECISIONS, {
    where,
    limit: limit > 0 ? Math.min(limit, MAX_LIST) : MAX_LIST,
  });
  return rows.map(decisionOf);
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
