// The store of decisions: staging them, moving them from state to state, reading them; and the keys by which a call that is
// asked for again finds its decision.

import {
  checkDraft,
  checkReason,
  checkVerdict,
  copyMetadata,
  DECISIONS,
  type Decision,
  type DecisionId,
  type DecisionState,
  isDecisionState,
  isLegal,
  type Metadata,
  NO_VERDICT,
  packVerdict,
  type SessionId,
  TIERS,
  type Tier,
  unpackVerdict,
  type Verdict,
} from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { CALL_KEYS } from "../model/interaction.ts";
import { checkName, type Instant, isName } from "../model/names.ts";
import { OPERATIONS } from "../model/operation.ts";
import { encoded, MAX_LIST } from "../model/record.ts";
import { EPOCH, SWITCHES } from "../model/switch.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { fromIso } from "../util/clock.ts";
import { definedFields } from "../util/defined-fields.ts";
import { invariant } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject, JsonValue } from "../util/json.ts";
import {
  type Along,
  along,
  type Cell,
  type Comparison,
  type Conditions,
  type EventPlan,
  insertStep,
  NOW,
  type Row,
  requireStep,
  type Step,
  updateStep,
  type Values,
} from "./engine.ts";
import { type Damaged, everyReadable, readable, type TenantEngine } from "./tenant-engine.ts";

/**
 * Where decisions are stored. It is small on purpose: to use your own store, implement these nine calls and run
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
  /** All of them, not a page. Refuses an empty session with invalid_input, because "all sessions" would be a leak. */
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

/** With `session`, only if the decision is one of that session. Throws invalid_input for a verdict that is none. */
export function reviewMove(
  tier: Tier,
  id: DecisionId,
  verdict: Verdict,
  session?: SessionId,
): DecisionMove {
  checkVerdict(verdict);
  const { from, yes, no } = TIERS[tier];
  const column = tier === "tech" ? "tech_verdict" : "biz_verdict";
  return moveOf(id, from, verdict.approved ? yes : no, {
    set: {
      [column]: encoded("verdict", { ...verdict }),
      // Only a technical yes leads to a question; after any other verdict no person is asked.
      ...(tier === "tech" && verdict.approved ? {} : { unasked: null }),
    },
    type: "decision.reviewed",
    actor: `validator:${verdict.validator}`,
    data: { tier, verdict: shownVerdict(verdict) },
    session,
  });
}

/** With `session`, only if the decision is one of that session. Throws invalid_input for a proof that is no data. */
export function executedMove(
  id: DecisionId,
  proof: unknown,
  actor: string,
  session?: SessionId,
): DecisionMove {
  const stored = encoded("proof", proof);
  return moveOf(id, "approved", "executed", {
    set: { execution_proof: stored, awaits_tool: null },
    type: "decision.executed",
    actor,
    data: {},
    hashes: { proof: sha256Hex(stored) },
    session,
  });
}

/** Throws invalid_input for a reason that is no text. */
export function failedMove(id: DecisionId, reason: string, actor: string): DecisionMove {
  checkReason(reason);
  return moveOf(id, "approved", "failed", {
    set: { execution_error: encoded("reason", reason), awaits_tool: null },
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
  /** Required of the decision. A fact that is required is known before the write, which saves a round trip. */
  readonly session?: SessionId | undefined;
}

function moveOf(
  id: DecisionId,
  from: DecisionState,
  to: DecisionState,
  { set, type, actor, data, hashes, session }: MoveFacts,
): DecisionMove {
  invariant(isLegal(from, to), `${from} to ${to} is not in the table of moves`);
  return {
    id,
    from,
    to,
    step: updateStep(
      DECISIONS,
      id,
      { state: from, ...definedFields({ session_id: session }) },
      { ...set, state: to, updated_at: NOW },
    ),
    event: (index) => ({
      type,
      subject: id,
      session: { left: "session_id", step: index },
      actor,
      data: { from, to, ...data },
      ...definedFields({ hashes }),
    }),
  };
}

/** The first record of a decision, under a fresh id. Throws as `DecisionStore.stage`. */
export function stagingOf(id: DecisionId, draft: Decision, by: By): Along {
  checkDraft(draft);
  const actor = actorOf(by);
  const { state: to, diff, metadata, origin, sessionId: session } = draft;
  const data = {
    to,
    source_tool: diff.sourceTool,
    raw_bytes: diff.raw.byteLength,
    metadata: shownMetadata(metadata),
    ...definedFields({ origin }),
  };
  const hashes = { raw: sha256Hex(diff.raw) };
  return {
    step: insertStep(DECISIONS, id, rowOfDraft(draft)),
    event: () => ({ type: "decision.staged", subject: id, session, actor, data, hashes }),
  };
}

const CALLER: By = { actor: "caller" };

/** Decisions over any engine. The rules live here once; the engine only compares and writes. */
export function engineDecisions(engine: TenantEngine): DecisionStore {
  return {
    async stage(draft, by = CALLER, others = []) {
      const staged = along([stagingOf(engine.newId(), draft, by)]);
      const result = await engine.commit({ ...staged, steps: [...staged.steps, ...others] });
      const row = result.committed ? result.rows[0] : undefined;
      invariant(row !== undefined, "a fresh id was taken");
      return decisionOf(row);
    },

    updateTechVerdict: (id, verdict) => move(engine, () => reviewMove("tech", id, verdict), stuck),
    updateBizVerdict: (id, verdict) =>
      move(engine, () => reviewMove("business", id, verdict), stuck),
    markExecuted: (id, proof, by = CALLER) =>
      close(engine, () => executedMove(id, proof, actorOf(by))),
    markFailed: (id, reason, by = CALLER) =>
      close(engine, () => failedMove(id, reason, actorOf(by))),

    async get(id) {
      const row = isName(id) ? await engine.get(DECISIONS, id) : undefined;
      if (row === undefined) throw missing(id);
      return decisionOf(row);
    },

    list: (query = {}) => find(engine, query),

    async listBySession(sessionId) {
      checkName("session id", sessionId);
      return everyReadable(engine, DECISIONS, { session_id: sessionId }, decisionOf);
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

/**
 * Closes a decision whose outcome is reported without a permit. While an executor holds a permit, only that executor knows
 * the outcome. Throws permit_taken.
 */
async function close(engine: TenantEngine, plan: () => DecisionMove): Promise<Decision> {
  const planned = plan();
  const { id } = planned;
  // An execution of this gate is recorded whether or not its decision was closed by hand.
  for (const where of [{ status: { oneOf: NOT_HELD } }, { executor: "" }]) {
    const free = requireStep(OPERATIONS, `${id}.0`, where, "holds");
    const closed = await moved(engine, planned, closedBefore, [free]);
    if (closed !== undefined) return closed;
  }
  throw permitTaken(id);
}

const NOT_HELD = ["success", "failed", "rolled_back", "returned"];

export function permitTaken(id: DecisionId): SallyportError {
  const hint = "Wait for the report of the executor that holds it.";
  return new SallyportError("permit_taken", { id, hint });
}

async function move(
  engine: TenantEngine,
  plan: () => DecisionMove,
  unmoved: Unmoved,
): Promise<Decision> {
  const decision = await moved(engine, plan(), unmoved, []);
  invariant(decision !== undefined, "only another step can be in the way of a move");
  return decision;
}

/** Of two racing moves one is written; the other learns what is there now. Undefined when one of the other steps does not hold. */
async function moved(
  engine: TenantEngine,
  planned: DecisionMove,
  unmoved: Unmoved,
  others: readonly Step[],
): Promise<Decision | undefined> {
  const { id, from, to, step, event } = planned;
  if (!isName(id)) throw missing(id);
  for (;;) {
    const result = await engine.commit({ steps: [step, ...others], events: [event(0)] });
    if (!result.committed && result.step > 0) return undefined;
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
  const hint = "Read the decision again: it was moved first, or it was never there.";
  return new SallyportError("illegal_transition", { id, from, to, hint });
}

export function rowOfDraft(draft: Decision): Values {
  const { sessionId, state, diff, metadata } = draft;
  return DECISIONS.row({
    sessionId,
    state,
    diff,
    metadata: metadata === diff.metadata ? null : metadata,
    origin: draft.origin,
    asked: false,
    unasked: draft.origin === "port" ? NOW : null,
    awaitsTool: null,
    createdAt: NOW,
    updatedAt: NOW,
  });
}

/** Checked again after reading: a row that was changed from outside stops here and goes no further. */
export function decisionOf(row: Row): Decision {
  const { origin, metadata, machineVerdict, asked, unasked, awaitsTool, ...rest } =
    DECISIONS.read(row);
  return {
    ...rest,
    ...definedFields({ origin }),
    ...(awaitsTool === undefined ? {} : { awaitsTool: true }),
    metadata: metadata ?? rest.diff.metadata,
    machineVerdict: machineVerdict === undefined ? NO_VERDICT : unpackVerdict(machineVerdict),
  };
}

/** It is shown once, while the business tier has it, and keeps that tier's verdict. Throws invalid_input. */
export function shownStep(id: DecisionId, machine: JsonObject | undefined): Step {
  const kept = machine && DECISIONS.cells({ machineVerdict: packVerdict(machine) });
  const where = { state: "pending_ml", asked: 0 };
  return updateStep(DECISIONS, id, where, { asked: 1, unasked: null, ...kept });
}

/** The trail holds JSON with one meaning only, so half characters are replaced there (the record keeps them). */
export function shownVerdict(verdict: Verdict): JsonObject {
  return {
    approved: verdict.approved,
    score: verdict.score,
    severity: verdict.severity,
    reason: verdict.reason.toWellFormed(),
    validator: verdict.validator.toWellFormed(),
    policy_version: verdict.policyVersion.toWellFormed(),
  };
}

export function shownMetadata(metadata: Metadata): JsonValue {
  try {
    // Wrapped as it will be in the entry, because one level more may be one too many.
    canonicalJson({ metadata });
    return copyMetadata(metadata) as JsonObject;
  } catch {
    // Not an error: metadata may hold anything. The trail then says so instead of showing something else.
    return { $opaque: "cannot be shown as JSON" };
  }
}

// Decisions that are not stored yet: a proposal that is reviewed promptly is written once, with its question or its refusal.

/** Decisions on their way into the store. */
export interface ProposalStore {
  /** What a proposal is dated by and bound to, in one read. */
  moment(): Promise<Moment>;
  /** A draft under a fresh id, and the part of a change that stores it. Throws as `DecisionStore.stage`. */
  begin(draft: Decision, by: By): Begun;
  /** Stores a decision that was begun, with what was decided about it since, in one transaction. */
  write(parts: readonly Along[]): Promise<void>;
}

export interface Moment {
  /** By the store's clock, epoch milliseconds. */
  readonly now: number;
  /** See `EpochStore.current`. */
  readonly epoch: string;
}

export interface Begun {
  readonly decision: Decision;
  readonly part: Along;
}

export function engineProposals(engine: TenantEngine): ProposalStore {
  return {
    async moment() {
      const [now, epoch] = await Promise.all([engine.now(), engine.get(SWITCHES, EPOCH)]);
      return { now, epoch: String(epoch?.["state"] ?? "") };
    },
    begin(draft, by) {
      const id = engine.newId();
      return { decision: { ...draft, id }, part: stagingOf(id, draft, by) };
    },
    async write(parts) {
      const { committed } = await engine.commit(along(parts));
      invariant(committed, "a fresh id was taken");
    },
  };
}

// How a call that is asked for again finds its decision: by its key, or by what it asks for.

export interface CallKeys {
  /** The decision that a keyed call of a session led to; undefined when none did. */
  ofCall(
    sessionId: SessionId,
    key: string,
  ): Promise<(CallKey & { decisionId: DecisionId }) | undefined>;
  /** The decision that asked last for this content; undefined when none did. See `Showing.content`. */
  ofContent(hash: string): Promise<DecisionId | undefined>;
  /** Another request leads to a decision that was proposed before: asked for by its key, it answers the same from now on. */
  askedAgain(
    decision: { readonly id: DecisionId; readonly sessionId: SessionId },
    keys: readonly CallKey[],
    by: By,
  ): Promise<void>;
}

/** One call that may be repeated. */
export interface CallKey {
  readonly key: string;
  /** Its index among the calls of the decision, from 0. */
  readonly step: number;
  /** SHA-256 of tool and input: the same key with another content is a mistake. */
  readonly actionHash: string;
}

/** What a decision asks for, as a hash, and the decision that asked for it before; empty for none. */
export interface Content {
  readonly hash: string;
  readonly replaces: DecisionId | "";
  /** When another decision asks for the same by then: that one stands, or both do. */
  readonly otherwise: "the_other" | "both";
}

export function engineCallKeys(engine: TenantEngine): CallKeys {
  return {
    async ofCall(sessionId, key) {
      const row = await engine.get(CALL_KEYS, callKeyId(sessionId, key));
      if (row === undefined) return undefined;
      const { actionHash, decisionId, step } = CALL_KEYS.read(row);
      return { key, actionHash, decisionId, step };
    },
    async ofContent(hash) {
      const row = await engine.get(CALL_KEYS, contentId(hash));
      return row === undefined ? undefined : CALL_KEYS.read(row).decisionId;
    },
    async askedAgain({ id, sessionId }, keys, { actor }) {
      checkName("actor", actor);
      const type = "decision.asked_again";
      // A key that is in use leads to what it was used for: then nothing is to be written.
      await engine.commit({
        steps: keys.map((key) => callKeyStep(sessionId, id, key)),
        events: [{ type, subject: id, session: sessionId, actor, data: {} }],
      });
    },
  };
}

/** One id per session and key, the same in every process; also the id of the operation of such a call. */
export function callKeyId(sessionId: SessionId, key: string): string {
  return `k-${sha256Hex(canonicalJson([sessionId, key]))}`;
}

export function callKeyStep(sessionId: SessionId, decisionId: DecisionId, call: CallKey): Step {
  const row = CALL_KEYS.row({ ...call, decisionId, createdAt: NOW });
  return insertStep(CALL_KEYS, callKeyId(sessionId, call.key), row);
}

function contentId(hash: string): string {
  return `c-${hash}`;
}

/** Of two identical calls that are proposed at the same time one is put before people. */
export function contentStep(decisionId: DecisionId, { hash, replaces }: Content): Step {
  // The hash is in the id.
  const row = CALL_KEYS.row({ actionHash: "", decisionId, step: 0, createdAt: NOW });
  const id = contentId(hash);
  return replaces === ""
    ? insertStep(CALL_KEYS, id, row)
    : updateStep(CALL_KEYS, id, { decision_id: replaces }, row);
}
