import { DECISIONS, type DecisionId, type SessionId } from "../model/decision.ts";
import { isDelegated } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import { DECOYS } from "../model/identity.ts";
import { INTERACTIONS, type Interaction } from "../model/interaction.ts";
import { checkName } from "../model/names.ts";
import {
  OPERATIONS,
  type Operation,
  type OperationId,
  type RecordedUndo,
} from "../model/operation.ts";
import { definedFields } from "../util/defined-fields.ts";
import { invariant } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject } from "../util/json.ts";
import { encodeValue } from "../util/value-codec.ts";
import type { DecisionMove } from "./decisions.ts";
import { type BoundKind, boundSteps, type DelegatedEffect } from "./delegations.ts";
import {
  type Along,
  along,
  type Conditions,
  type EventPlan,
  insertStep,
  NOW,
  requireStep,
  type Step,
  updateStep,
  type Values,
} from "./engine.ts";
import { interactionOf } from "./interactions.ts";
import { isListOld, pauseSteps, RUNNING } from "./switch.ts";
import { everyOne, getRecord, type TenantEngine } from "./tenant-engine.ts";

/** What was executed and how to undo it. Every call is one transaction with its audit entries. */
export interface OperationStore {
  /**
   * Records the intent, before anything happens. Refuses when the tenant is stopped, when the decision behind it is not
   * approved with this hash or has expired, and when it was used before.
   */
  start(intent: Intent): Promise<StartAnswer>;
  /** Records the outcome and its consequences in one transaction, if the fence is still current. */
  settle(id: OperationId, settlement: Settlement): Promise<SettleAnswer>;
  /**
   * An external executor reports what it did without having taken a permit: intent, outcome and the decision's last move are
   * one transaction. Not settled when the decision was begun before, or is not approved; without an operation in the latter case.
   */
  report(intent: Intent, report: Report): Promise<ReportAnswer>;
  /** A permit that was not used: it may be taken again, under a new fence. Not settled as for `settle`. */
  giveBack(id: OperationId, giving: GivingBack): Promise<SettleAnswer>;
  /** Takes over an operation whose lease ran out, under a new fence. Undefined if another process was first, or the tenant is stopped. */
  takeOver(
    id: OperationId,
    leaseMs: number,
    actor: string,
    holds?: readonly Hold[],
  ): Promise<Operation | undefined>;
  /**
   * A person says that an unknown operation did not happen and should be tried again, under a new fence. Undefined if it is
   * not unknown any more, if a step of `along` does not hold, or the tenant is stopped.
   */
  reopen(id: OperationId, again: Reopening): Promise<Operation | undefined>;
  /**
   * A new attempt by the current holder, under a new fence, before the tool is probed or called again. Undefined if another
   * process holds it, if a step of `along` does not hold, or the tenant is stopped.
   */
  tryAgain(id: OperationId, fence: number, again: Reopening): Promise<Operation | undefined>;
  /**
   * Before a call whose intent was answered late: renews the lease if the operation is still held, nothing is stopped and no
   * delegation behind it has ended. Undefined otherwise; then the tool must not be called.
   */
  confirm(id: OperationId, fence: number, again: Reopening): Promise<Operation | undefined>;
  /** Extends the lease while the tool runs; false if the fence has moved. */
  renew(id: OperationId, fence: number, leaseMs: number): Promise<boolean>;
  /** Throws not_found. */
  get(id: OperationId): Promise<Operation>;
  /** All of them, however many, oldest first. */
  listBySession(sessionId: SessionId, narrow?: Narrow): Promise<readonly Operation[]>;
  /** One page, newest first. */
  listNewest(
    sessionId: SessionId,
    page: { readonly before?: number; readonly limit: number },
  ): Promise<NewestPage>;
  /** Started operations whose lease ran out by the store's clock; with `held`, also those whose lease did not. */
  listAbandoned(limit: number, held?: "held"): Promise<readonly Operation[]>;
}

/** A part of a session: one message, or one decision; `reads` that have nothing to undo may be left out. */
export interface Narrow {
  readonly messageId?: string;
  readonly decisionId?: DecisionId;
  readonly without?: "reads";
}

/** `next` is the `before` of the next page; undefined at the end. */
export interface NewestPage {
  readonly operations: readonly Operation[];
  readonly next: number | undefined;
}

export interface Intent {
  readonly id: OperationId;
  readonly sessionId: SessionId;
  readonly messageId: string;
  readonly callId: string;
  readonly turn: number;
  readonly tool: string;
  /** The tool's declared effect: read, write, external or empty. */
  readonly effect: string;
  readonly definitionHash: string;
  readonly input: string;
  readonly workingDirectory: string;
  readonly chain?: readonly string[];
  readonly step: number;
  readonly undoOf: OperationId | "";
  /** The decision it uses up and the hash that was approved; undefined when the gate allowed it by itself. */
  readonly approval: Approval | undefined;
  /** The external executor that takes a permit; left out when it runs here. */
  readonly executor?: string;
  /** What else must hold in the transaction that writes the intent: a standing rule, a claim, a delegation. */
  readonly holds?: readonly Hold[];
  /** The answer of a person that allows it (`InteractionStore.completing`), written together with it or not at all. */
  readonly yes?: readonly Along[];
  /** What allowed it without a person, for the trail. */
  readonly allowedBy?: string;
  readonly leaseMs: number;
  readonly actor: string;
}

export interface Approval {
  readonly decisionId: DecisionId;
  /** Undefined for a payload that was staged from outside: it was reviewed without being shown to a person. */
  readonly hash: string | undefined;
  /** It waits for a process with its tools; this intent ends the wait. */
  readonly awaitsTool?: true | undefined;
}

export interface Report {
  readonly outcome: Outcome;
  readonly closes: DecisionMove;
}

export type ReportAnswer =
  | SettleAnswer
  | { readonly settled: false; readonly operation: undefined };

export interface GivingBack extends Pick<Settlement, "fence" | "along" | "actor"> {
  readonly from: "started" | "unknown";
}

/** A condition of an intent, and the refusal when it does not hold. It may count its use. */
export interface Hold {
  readonly refusal: StartRefusal;
  readonly step: Step & { readonly op: "require" | "update" };
}

export interface Reopening {
  readonly leaseMs: number;
  readonly actor: string;
  readonly along: readonly Along[];
}

export type StartAnswer =
  /** The question is the one that was closed by `Intent.yes`. */
  | {
      readonly started: true;
      readonly operation: Operation;
      readonly interaction?: Interaction;
    }
  | { readonly started: false; readonly reason: StartRefusal; readonly operation?: Operation };

/** `used_up` comes with the operation that used it up. */
export type StartRefusal =
  | "stopped"
  | "not_approved"
  | "expired_or_changed"
  | "rule_ended"
  /** The breaker of its tool is open. */
  | "circuit_open"
  | "claim_lost"
  | "delegation_ended"
  /** The calls before it are being undone, or the one after it is being executed. */
  | "overtaken"
  | "restored"
  | "used_up"
  /** The store does not know the call to be undone as finished: it was undone before, or a failover lost its outcome. */
  | "nothing_to_undo";

export interface Settlement {
  readonly fence: number;
  /** Only from this status; `abandoned` is started with a lease that ran out. From started or unknown when left out. */
  readonly from?: "started" | "abandoned" | "unknown";
  /** Only if the operation is one of that session. A fact that is required is known before the write, which saves a round trip. */
  readonly sessionId?: SessionId;
  readonly outcome: Outcome;
  /** The decision that this outcome closes. */
  readonly closes?: DecisionMove;
  /** The operation that this one undid. */
  readonly tookBack?: OperationId;
  /** Earlier operations whose targets that undo restored as well. */
  readonly broughtBack?: readonly BroughtBack[];
  /** What else is written with it: the question about a lost outcome, or the answer to it. */
  readonly along?: readonly Along[];
  readonly actor: string;
}

/**
 * An earlier operation whose target an undo has restored to the state after that operation. If the target counts versions,
 * it has a new one nevertheless, and a later undo compares with the new one.
 */
export interface BroughtBack {
  readonly id: OperationId;
  readonly from: string;
  readonly to: string;
}

export type Outcome =
  | {
      readonly status: "success";
      readonly output: string;
      readonly truncated: boolean;
      readonly storedPath: string;
      readonly undo: RecordedUndo | undefined;
      readonly stateVersion: string;
    }
  | {
      readonly status: "failed";
      readonly error: string;
      readonly output: string;
      readonly truncated?: boolean;
      readonly storedPath?: string;
      /** How to undo what it did all the same; undefined for a call that changed nothing. */
      readonly undo?: RecordedUndo | undefined;
      readonly stateVersion?: string;
    }
  | { readonly status: "unknown"; readonly error: string };

/** Not settled: the fence moved or it was settled before; the operation as it is now says which. */
export type SettleAnswer =
  | { readonly settled: true; readonly operation: Operation }
  | { readonly settled: false; readonly operation: Operation };

/** Operations over any engine. */
export function engineOperations(engine: TenantEngine): OperationStore {
  return {
    start: (intent) => start(engine, intent),
    settle: (id, settlement) => settle(engine, id, settlement),
    report: (intent, given) => report(engine, intent, given),
    giveBack: (id, giving) => giveBack(engine, id, giving),
    takeOver(id, leaseMs, actor, holds = []) {
      const where = { status: "started", lease_until: { atMost: NOW } };
      const type = "operation.taken_over";
      return again(engine, id, { where, type, leaseMs, actor, along: holds });
    },
    reopen: (id, how) =>
      again(engine, id, { ...how, where: { status: "unknown" }, type: "operation.reopened" }),
    tryAgain(id, fence, how) {
      const where = { status: "started", fence };
      return again(engine, id, { ...how, where, type: "operation.attempted" });
    },
    confirm(id, fence, how) {
      const where = { status: "started", fence, lease_until: { atLeast: NOW } };
      return again(engine, id, { ...how, where, type: "operation.renewed" });
    },
    async renew(id, fence, leaseMs) {
      const where = { status: "started", fence, lease_until: { atLeast: NOW } };
      const set = { lease_until: { nowPlusMs: leaseMs } };
      const steps = [updateStep(OPERATIONS, id, where, set)];
      const events = [told("operation.renewed", 0, "executor")];
      return (await engine.commit({ steps, events })).committed;
    },
    get: (id) => getRecord(engine, OPERATIONS, id),
    async listBySession(sessionId, { messageId, decisionId, without } = {}) {
      checkName("session id", sessionId);
      const narrow = definedFields({ message_id: messageId, decision_id: decisionId });
      const where = { session_id: sessionId, ...narrow };
      const all = await everyOne(engine, OPERATIONS, where, OPERATIONS.read);
      return without === "reads" ? all.filter((one) => !onlyRead(one)) : all;
    },
    async listNewest(sessionId, { before, limit }) {
      checkName("session id", sessionId);
      const rows = await engine.find(OPERATIONS, {
        where: { session_id: sessionId },
        ...definedFields({ beforeOrd: before }),
        newestFirst: true,
        limit: limit + 1,
      });
      const shown = rows.slice(0, limit);
      const next = rows.length > limit ? Number(shown.at(-1)?.["ord"]) : undefined;
      return { operations: shown.map(OPERATIONS.read), next };
    },
    async listAbandoned(limit, held) {
      const over = held === undefined ? { lease_until: { atMost: NOW } } : {};
      const where = { status: "started", ...over };
      return (await engine.find(OPERATIONS, { where, limit })).map(OPERATIONS.read);
    },
  };
}

/** A read changed nothing, unless it has an undo record. */
function onlyRead({ effect, undo, undoOf }: Operation): boolean {
  return effect === "read" && undo === undefined && undoOf === "";
}

/** Allows another or a continued call of the tool, unless the tenant is stopped or a delegation behind it has ended. */
async function again(
  engine: TenantEngine,
  id: string,
  how: Reopening & { readonly where: Conditions; readonly type: string },
): Promise<Operation | undefined> {
  const { where, type, leaseMs, actor } = how;
  const attempt = type === "operation.renewed" ? {} : NEW_ATTEMPT;
  const set = { lease_until: { nowPlusMs: leaseMs }, ...attempt };
  const own: Along = {
    step: updateStep(OPERATIONS, id, where, set),
    event: (step) => told(type, step, actor),
  };
  const row = await engine.get(OPERATIONS, id);
  const known = row && OPERATIONS.read(row);
  // A process that continues an undo acts for the person who requested it.
  const acting = known && { ...known, actor: known.chain[0] ?? actor };
  const limits = acting === undefined ? [] : await limitsOf(engine, acting, "goes-on");
  const unpaused = known === undefined ? [] : await pauseSteps(engine, known);
  const held = [...limits, ...unpaused].map((step): Along => ({ step }));
  const result = await engine.commit(along([{ step: RUNNING }, own, ...how.along, ...held]));
  if (result.committed) return OPERATIONS.read(result.rows[1] ?? {});
  return unpaused.length > 0 && (await isListOld(engine)) ? again(engine, id, how) : undefined;
}

const NEW_ATTEMPT = {
  status: "started",
  attempt: { plus: 1 },
  fence: { plus: 1 },
  updated_at: NOW,
} as const;

/** The conditions of a start, in order; the index of the first that does not hold names the refusal. */
async function start(engine: TenantEngine, intent: Intent): Promise<StartAnswer> {
  checkName("operation id", intent.id);
  checkName("session id", intent.sessionId);
  checkName("tool", intent.tool);
  checkName("actor", intent.actor);
  const unpaused = await pauseSteps(engine, intent);
  const running = [RUNNING, ...unpaused];
  const required = running.map((step): [StartRefusal, Step] => ["stopped", step]);
  if (intent.approval !== undefined) {
    const { decisionId: id, hash, awaitsTool } = intent.approval;
    const approved = { state: "approved" };
    const isApproved = awaitsTool
      ? updateStep(DECISIONS, id, approved, { awaits_tool: null })
      : requireStep(DECISIONS, id, approved);
    required.push(["not_approved", isApproved]);
    if (hash !== undefined) {
      const shown = { hash, deadline: { atLeast: NOW } };
      required.push(["expired_or_changed", requireStep(INTERACTIONS, id, shown)]);
    }
    // A decoy: a known-bad call that tests whether reviewers look. No row matches, so an existing one refuses.
    required.push(["not_approved", requireStep(DECOYS, id, NONE, "holds")]);
  }
  for (const { refusal, step } of intent.holds ?? []) required.push([refusal, step]);
  for (const step of await limitsOf(engine, intent, "spends-a-call")) {
    required.push(["delegation_ended", step]);
  }
  const { id, executor = "", leaseMs } = intent;
  const first = await intend(
    engine,
    intent,
    required,
    insertStep(OPERATIONS, id, rowOfIntent(intent)),
  );
  if (!first.started && unpaused.length > 0 && (await isListOld(engine)))
    return start(engine, intent);
  if (first.started || first.operation?.status !== "returned") return first;
  // A permit that was given back is taken again in its own row, so that its fence grows.
  const where = { status: "returned", fence: first.operation.fence };
  const set = { ...NEW_ATTEMPT, executor, lease_until: { nowPlusMs: leaseMs } };
  return intend(engine, intent, required, updateStep(OPERATIONS, id, where, set));
}

/** Writes the intent if everything required holds. */
async function intend(
  engine: TenantEngine,
  intent: Intent,
  required: readonly [StartRefusal, Step][],
  own: Step & { readonly op: "insert" | "update" },
): Promise<StartAnswer> {
  const { yes = [] } = intent;
  // After the intent, so that a rollback that was overtaken by another one gets the other's operation.
  const undone = intent.undoOf === "" ? [] : [requireStep(OPERATIONS, intent.undoOf, FINISHED)];
  const event = (place: number) =>
    own.op === "insert"
      ? startedEvent(intent, place)
      : told("operation.reopened", place, intent.actor);
  const before = required.map(([, step]): Along => ({ step }));
  const after = undone.map((step): Along => ({ step }));
  const change = along([...yes, ...before, { step: own, event }, ...after]);
  const place = change.steps.indexOf(own);
  const result = await engine.commit(change);
  if (result.committed) {
    const operation = OPERATIONS.read(result.rows[place] ?? {});
    if (yes.length === 0) return { started: true, operation };
    return { started: true, operation, interaction: interactionOf(result.rows[0] ?? {}) };
  }
  // The answer may have been in the way as well as what follows from it: its giver learns more by giving it alone.
  if (yes.length > 0) return { started: false, reason: "not_approved" };
  if (result.step > place) return { started: false, reason: "nothing_to_undo" };
  if (result.step < place) {
    const reason = required[result.step]?.[0];
    invariant(reason !== undefined, "a refusal names a step");
    return { started: false, reason };
  }
  const operation = result.current && OPERATIONS.read(result.current);
  return { started: false, reason: "used_up", ...definedFields({ operation }) };
}

const FINISHED = { status: { oneOf: ["success", "failed"] } } as const;

function startedEvent(intent: Intent, step: number): EventPlan {
  const { executor = "" } = intent;
  return {
    ...told("operation.started", step, intent.actor, {
      tool: intent.tool,
      definition: intent.definitionHash,
      decision: intent.approval?.decisionId ?? "",
      step: intent.step,
      undo_of: intent.undoOf,
      ...(executor === "" ? {} : { executor }),
      ...definedFields({ allowed_by: intent.allowedBy }),
    }),
    hashes: { input: sha256Hex(intent.input) },
  };
}

/** Permit and outcome in one. It reports what has happened, so neither the kill switch nor a deadline can refuse it. */
async function report(
  engine: TenantEngine,
  intent: Intent,
  { outcome, closes }: Report,
): Promise<ReportAnswer> {
  checkName("operation id", intent.id);
  checkName("actor", intent.actor);
  const row = { ...rowOfIntent(intent), ...rowOfOutcome(outcome) };
  const result = await engine.commit({
    steps: [closes.step, insertStep(OPERATIONS, intent.id, row)],
    events: [startedEvent(intent, 1), outcomeEvent(outcome, 1, intent.actor), closes.event(0)],
  });
  if (result.committed) return { settled: true, operation: OPERATIONS.read(result.rows[1] ?? {}) };
  return result.step === 0 || result.current === undefined
    ? { settled: false, operation: undefined }
    : { settled: false, operation: OPERATIONS.read(result.current) };
}

async function giveBack(
  engine: TenantEngine,
  id: OperationId,
  { fence, from, along: others = [], actor }: GivingBack,
) {
  const set = { status: "returned", updated_at: NOW };
  const own: Along = {
    step: updateStep(OPERATIONS, id, { fence, status: from }, set),
    event: (step) => told("operation.returned", step, actor),
  };
  return settled(engine, id, [own, ...others]);
}

async function settle(engine: TenantEngine, id: string, settlement: Settlement) {
  const { fence, from, sessionId, outcome, closes, tookBack, broughtBack = [], actor } = settlement;
  const isOurs = { fence, ...definedFields({ session_id: sessionId }), ...FROM[from ?? "open"] };
  const parts: Along[] = [
    {
      step: updateStep(OPERATIONS, id, isOurs, rowOfOutcome(outcome)),
      event: (step) => outcomeEvent(outcome, step, actor),
    },
  ];
  if (tookBack !== undefined) {
    const set = { status: "rolled_back", updated_at: NOW };
    parts.push({
      step: updateStep(OPERATIONS, tookBack, FINISHED, set),
      event: (step) => told("operation.undone", step, actor, { by: id }),
    });
  }
  for (const { id: earlier, from: old, to } of broughtBack) {
    const where = { status: "success", state_version: encodeValue(old) };
    const set = { state_version: encodeValue(to), updated_at: NOW };
    const hashes = { version: sha256Hex(to.toWellFormed()) };
    parts.push({
      step: updateStep(OPERATIONS, earlier, where, set),
      event: (step) => ({ ...told("operation.brought_back", step, actor, { by: id }), hashes }),
    });
  }
  if (closes !== undefined) parts.push(closes);
  return settled(engine, id, [...parts, ...(settlement.along ?? [])]);
}

const FROM = {
  open: { status: { oneOf: ["started", "unknown"] } },
  started: { status: "started" },
  abandoned: { status: "started", lease_until: { atMost: NOW } },
  unknown: { status: "unknown" },
} as const satisfies Record<string, Conditions>;

function outcomeEvent(outcome: Outcome, step: number, actor: string): EventPlan {
  const event = told(`operation.${EVENTS[outcome.status]}`, step, actor, factsOf(outcome));
  const { status } = outcome;
  if (status === "unknown" || (status === "failed" && outcome.undo === undefined)) return event;
  const { output, undo, stateVersion = "" } = outcome;
  const hashes = {
    output: sha256Hex(output.toWellFormed()),
    // A later undo relies on these two, so a change of them must be detectable.
    ...(undo === undefined ? {} : { undo: sha256Hex(encodeValue(undo)) }),
    ...(stateVersion === "" ? {} : { version: sha256Hex(stateVersion.toWellFormed()) }),
  };
  return { ...event, hashes };
}

/** Writes the parts, of which the first is about this operation, or answers with the operation as it is. */
async function settled(
  engine: TenantEngine,
  id: OperationId,
  parts: readonly Along[],
): Promise<SettleAnswer> {
  const result = await engine.commit(along(parts));
  const row = result.committed ? result.rows[0] : await engine.get(OPERATIONS, id);
  if (row === undefined) throw new SallyportError("not_found", { id });
  return { settled: result.committed, operation: OPERATIONS.read(row) };
}

const NONE = { created_at: -1 } as const;

const EVENTS = { success: "succeeded", failed: "failed", unknown: "lost" } as const;

function factsOf(outcome: Outcome): JsonObject {
  if (outcome.status !== "success") return { error: outcome.error.toWellFormed() };
  const { truncated, undo } = outcome;
  return {
    truncated,
    undo: undo === undefined ? "none" : undo.irreversible ? "irreversible" : "tool",
  };
}

function told(type: string, step: number, actor: string, data: JsonObject = {}): EventPlan {
  return {
    type,
    subject: { left: "id", step },
    session: { left: "session_id", step },
    actor,
    data,
    facts: { fence: { left: "fence", step } },
  };
}

/** By the session's id alone, here where every effect begins, so that no path can omit what was delegated with it. */
async function limitsOf(engine: TenantEngine, { sessionId, ...rest }: Acting, kind: BoundKind) {
  return isDelegated(sessionId) ? boundSteps(engine, { sessionId, ...rest }, kind) : [];
}

type Acting = Omit<DelegatedEffect, "sessionId"> & { readonly sessionId: SessionId };

function rowOfIntent(intent: Intent): Values {
  return OPERATIONS.row({
    ...intent,
    chain: intent.chain ?? [],
    decisionId: intent.approval?.decisionId ?? "",
    executor: intent.executor ?? "",
    status: "started",
    attempt: 1,
    fence: 1,
    leaseUntil: { nowPlusMs: intent.leaseMs },
    truncated: false,
    createdAt: NOW,
    updatedAt: NOW,
  });
}

function rowOfOutcome(outcome: Outcome): Values {
  const { status } = outcome;
  if (status === "unknown") return OPERATIONS.cells({ ...outcome, updatedAt: NOW });
  const { output, truncated = false, storedPath = "", undo, stateVersion = "" } = outcome;
  const done = { status, output, truncated, storedPath, updatedAt: NOW };
  if (status === "success") return OPERATIONS.cells({ ...done, undo: undo ?? null, stateVersion });
  const undoable = undo === undefined ? {} : { undo, stateVersion };
  return OPERATIONS.cells({ ...done, error: outcome.error, ...undoable });
}

/** Holds while there is no such operation. */
export function notBegun(id: OperationId): Step & { readonly op: "require" } {
  return requireStep(OPERATIONS, id, { status: "none" }, "holds");
}

/** A call of a bundle starts only while the call before it is not being undone. */
export function notTakenBack(undoId: OperationId): Hold {
  return { refusal: "overtaken", step: notBegun(undoId) };
}

/** A call of a bundle is undone only while the one after it is not being executed. */
export function notGoneOn(nextId: OperationId): Hold {
  const where = { status: { oneOf: ["success", "failed", "unknown", "rolled_back", "returned"] } };
  return { refusal: "overtaken", step: requireStep(OPERATIONS, nextId, where, "holds") };
}
