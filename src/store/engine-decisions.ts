import {
  type Decision,
  type DecisionId,
  type DecisionState,
  isDecisionState,
} from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName, isName } from "../model/names.ts";
import { fromIso } from "../util/clock.ts";
import { sha256Hex } from "../util/hash.ts";
import { invariant } from "../util/invariant.ts";
import { checkDraft, shownMetadata } from "./decision-checks.ts";
import { type DecisionMove, executedMove, failedMove, reviewMove } from "./decision-moves.ts";
import { DECISIONS, decisionOf, rowOfDraft } from "./decision-rows.ts";
import {
  type By,
  type DecisionPage,
  type DecisionQuery,
  type DecisionStore,
  MAX_LIST,
} from "./decisions.ts";
import type { Cell, Comparison, Conditions } from "./engine.ts";
import { readable } from "./readable.ts";
import type { TenantEngine } from "./tenant-engine.ts";

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
