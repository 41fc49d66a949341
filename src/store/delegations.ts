import { checkReason, type SessionId } from "../model/decision.ts";
import type { CompletionPromise } from "../model/delegation.ts";
import {
  boundTo,
  DELEGATION_SLOTS,
  DELEGATIONS,
  type Delegation,
  type DelegationId,
  type DelegationState,
  isDelegated,
  type Scope,
} from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName, type Instant } from "../model/names.ts";
import type { OperationId } from "../model/operation.ts";
import { definedFields } from "../util/defined-fields.ts";
import { invariant } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject } from "../util/json.ts";
import type { By } from "./decisions.ts";
import {
  type EventPlan,
  insertStep,
  NOW,
  type NowPlus,
  requireStep,
  type Step,
  updateStep,
  type Values,
} from "./engine.ts";
import { RUNNING } from "./switch.ts";
import { everyOne, getRecord, type TenantEngine } from "./tenant-engine.ts";

/** Delegations to sub-agents. Every change is one transaction with its audit entry; time is the store's clock. */
export interface DelegationStore {
  /** Refuses if a delegation above has ended, if the parent has less to give, or if it has too many children. */
  create(draft: NewDelegation): Promise<CreateAnswer>;
  /** Throws not_found. */
  get(id: DelegationId): Promise<Delegation>;
  /** From the topmost delegation down to this one. Throws not_found. */
  chainOf(id: DelegationId): Promise<readonly Delegation[]>;
  /** A sentence about why it has ended; undefined while it and all delegations above it are active. */
  whyOver(id: DelegationId): Promise<string | undefined>;
  /** Oldest first. */
  list(query: {
    readonly rootSession?: SessionId;
    readonly parentSession?: SessionId;
  }): Promise<readonly Delegation[]>;
  /** Active ones, oldest first. */
  active(limit: number): Promise<readonly Delegation[]>;
  /** Active ones whose time is over by the store's clock. */
  overdue(limit: number): Promise<readonly Delegation[]>;
  /** Ends an active one, once. Throws illegal_transition when it has ended, or, for a report, when it was stopped from above. */
  close(id: DelegationId, closing: DelegationClosing, by: By): Promise<Delegation>;
  /** Records a refused delegation in the log. */
  refuse(refusal: Refused): Promise<void>;
}

export interface NewDelegation {
  readonly id: DelegationId;
  readonly parent: Delegation | undefined;
  readonly parentSession: SessionId;
  readonly rootSession: SessionId;
  readonly agents: readonly string[];
  readonly owner: string;
  readonly runId: string;
  readonly traceId: string;
  readonly task: string;
  readonly capsule: string;
  readonly promise: CompletionPromise;
  readonly scope: Omit<Scope, "expiresAt">;
  /** Left out: as long as the parent's own. */
  readonly ttlMs?: number;
  /** How many may work for this parent at the same time. */
  readonly atOnce: number;
  readonly workingDirectory: string;
  readonly tokenHash: string;
  readonly actor: string;
}

export type CreateRefusal = "stopped" | "parent_exceeded" | "too_many";
export type CreateAnswer =
  | { readonly created: true; readonly delegation: Delegation }
  | { readonly created: false; readonly reason: CreateRefusal };

export type DelegationClosing =
  | {
      readonly state: "reported";
      readonly output: string;
      readonly promiseMet: boolean;
      readonly missing: readonly string[];
    }
  | { readonly state: "failed" | "revoked"; readonly reason: string };

export interface Refused {
  readonly planId: string;
  readonly sessionId: SessionId;
  readonly actor: string;
  readonly data: JsonObject;
}

const TRIES = 5;
const OVERDUE = { state: "active", expires_at: { atMost: { nowPlusMs: -1 } } } as const;

export function engineDelegations(engine: TenantEngine): DelegationStore {
  const get = (id: DelegationId) => getDelegation(engine, id);

  async function chainOf(id: DelegationId): Promise<readonly Delegation[]> {
    const own = await get(id);
    const above = await Promise.all(own.chain.slice(0, -1).map(get));
    return [...above, own];
  }

  async function create(draft: NewDelegation): Promise<CreateAnswer> {
    checkName("agent", draft.agents[0]);
    checkName("actor", draft.actor);
    checkName("session id", draft.parentSession);
    const before: [CreateRefusal, Step][] = [["stopped", RUNNING], ...parentSteps(draft)];
    const row = DELEGATIONS.row({
      ...draft,
      promiseId: draft.promise.id,
      state: "active",
      chain: [...(draft.parent?.chain ?? []), draft.id],
      scope: { ...draft.scope, expiresAt: expiryOf(draft) },
      createdAt: NOW,
      updatedAt: NOW,
    });
    for (let tries = 0; tries < TRIES; tries += 1) {
      for (const slot of await slotsFor(engine, draft)) {
        const steps: Step[] = [
          ...before.map(([, step]) => step),
          insertStep(DELEGATIONS, draft.id, row),
          ...slot,
        ];
        const result = await engine.commit({ steps, events: [started(draft)] });
        if (result.committed) {
          return { created: true, delegation: DELEGATIONS.read(result.rows[before.length] ?? {}) };
        }
        const refusal = before[result.step];
        if (refusal !== undefined) return { created: false, reason: refusal[0] };
        if (result.step === before.length)
          throw new SallyportError("already_exists", { id: draft.id });
        // The slot is in use, or another process has just taken it; another one may be free.
      }
    }
    return { created: false, reason: "too_many" };
  }

  return {
    create,
    get,
    chainOf,
    async whyOver(id) {
      const chain = await chainOf(id);
      const ended = chain.find(({ state }) => state !== "active");
      if (ended !== undefined) return `The delegation ${ended.id} was ${ended.state}.`;
      // No delegation outlives the one above it, so checking its own deadline is enough.
      const late = await engine.find(DELEGATIONS, { where: { id, ...OVERDUE }, limit: 1 });
      return late.length > 0 ? `The time of ${id} is over.` : undefined;
    },
    async list({ rootSession, parentSession }) {
      const where = definedFields({ root_session: rootSession, parent_session: parentSession });
      return everyOne(engine, DELEGATIONS, where, DELEGATIONS.read);
    },
    async active(limit) {
      const where = { state: "active" };
      return (await engine.find(DELEGATIONS, { where, limit })).map(DELEGATIONS.read);
    },
    async overdue(limit) {
      return (await engine.find(DELEGATIONS, { where: OVERDUE, limit })).map(DELEGATIONS.read);
    },
    close: (id, closing, by) => close(engine, id, closing, by),
    async refuse({ planId, sessionId, actor, data }) {
      const about = { subject: planId, session: sessionId, actor, data };
      await engine.commit({ steps: [], events: [{ type: "delegation.refused", ...about }] });
    },
  };
}

async function getDelegation(engine: TenantEngine, id: DelegationId): Promise<Delegation> {
  if (isDelegated(id)) return getRecord(engine, DELEGATIONS, id);
  throw new SallyportError("not_found", { id: String(id) });
}

/** Every delegation above must be active and have as many calls and as much time left as is given to the child. */
function parentSteps({ parent, scope, ttlMs }: NewDelegation): [CreateRefusal, Step][] {
  const where = {
    state: "active",
    expires_at: { atLeast: { nowPlusMs: ttlMs ?? 0 } },
    calls_left: { atLeast: scope.calls },
  };
  return (parent?.chain ?? []).map((id): [CreateRefusal, Step] => [
    "parent_exceeded",
    requireStep(DELEGATIONS, id, where),
  ]);
}

function expiryOf({ ttlMs, parent }: NewDelegation): Instant | NowPlus {
  if (ttlMs !== undefined) return { nowPlusMs: ttlMs };
  invariant(parent !== undefined, "what hangs on nothing names its own time");
  return parent.scope.expiresAt;
}

function started(draft: NewDelegation): EventPlan {
  const { scope, promise } = draft;
  return {
    type: "delegation.started",
    subject: draft.id,
    session: draft.rootSession,
    actor: draft.actor,
    data: {
      plan: scope.planId,
      role: scope.role,
      write_permission: scope.writePermission,
      parent: draft.parentSession,
      agents: draft.agents.map((name) => name.toWellFormed()),
      trace: draft.traceId,
      promise: promise.id.toWellFormed(),
      run: draft.runId,
      tools: scope.tools.map((name) => name.toWellFormed()),
      files: scope.planFiles.map((name) => name.toWellFormed()),
      documents: scope.documents.map((name) => name.toWellFormed()),
      calls: scope.calls,
      depth: scope.depth,
    },
    hashes: { capsule: sha256Hex(draft.capsule.toWellFormed()) },
  };
}

const EVENTS = {
  reported: "delegation.reported",
  failed: "delegation.failed",
  revoked: "delegation.revoked",
} as const satisfies Record<Exclude<DelegationState, "active">, string>;

async function close(
  engine: TenantEngine,
  id: DelegationId,
  closing: DelegationClosing,
  { actor }: By,
): Promise<Delegation> {
  checkName("actor", actor);
  const own = await getDelegation(engine, id);
  const { set, data, hashes } = closingOf(closing);
  const alive = closing.state === "reported" ? { expires_at: { atLeast: NOW } } : {};
  const ended = { ...set, state: closing.state, updated_at: NOW };
  const update = updateStep(DELEGATIONS, id, { state: "active", ...alive }, ended);
  // A report under a delegation that ended above is refused; failing and revoking are always possible.
  const above = closing.state === "reported" ? own.chain.slice(0, -1) : [];
  const result = await engine.commit({
    steps: [update, ...delegationSteps(above, "goes-on")],
    events: [
      {
        type: EVENTS[closing.state],
        subject: id,
        session: own.rootSession,
        actor,
        data: {
          plan: own.scope.planId,
          trace: own.traceId,
          promise: own.promise.id.toWellFormed(),
          run: own.runId,
          ...data,
        },
        ...definedFields({ hashes }),
      },
    ],
  });
  if (result.committed) return DELEGATIONS.read(result.rows[0] ?? {});
  const now = await getDelegation(engine, id);
  const hint =
    now.state === "active"
      ? "It was stopped from above, or its time is over; nothing it does counts any more."
      : "It has ended before, and that stands.";
  throw new SallyportError("illegal_transition", { id, from: now.state, to: closing.state, hint });
}

interface ClosingFacts {
  readonly set: Values;
  readonly data: JsonObject;
  readonly hashes?: EventPlan["hashes"];
}

function closingOf(closing: DelegationClosing): ClosingFacts {
  if (closing.state !== "reported") {
    checkReason(closing.reason);
    const set = DELEGATIONS.cells({ reason: closing.reason });
    return { set, data: { reason: closing.reason.toWellFormed() } };
  }
  const { output, promiseMet, missing } = closing;
  return {
    set: DELEGATIONS.cells({ output, promiseMet }),
    data: {
      promise_met: promiseMet,
      missing: missing.map((name) => name.toWellFormed()),
    },
    hashes: { output: sha256Hex(output.toWellFormed()) },
  };
}

interface Child {
  readonly id: DelegationId;
  readonly parentSession: SessionId;
  /** How many places a parent has. */
  readonly atOnce: number;
}

/** Ways to get a place for the child, best first: a new one, one whose child has ended, one whose child may be late. */
async function slotsFor(
  engine: TenantEngine,
  { id, parentSession, atOnce }: Child,
): Promise<readonly (readonly Step[])[]> {
  const where = { parent_session: parentSession };
  const slots = await engine.find(DELEGATION_SLOTS, { where, limit: atOnce });
  const set = DELEGATION_SLOTS.cells({ childId: id, updatedAt: NOW });
  if (slots.length < atOnce) {
    const slotId = sha256Hex(`${slots.length}\n${parentSession}`);
    const row = { parent_session: parentSession, ...set };
    return [[insertStep(DELEGATION_SLOTS, slotId, row)]];
  }
  const ended: Step[][] = [];
  const late: Step[][] = [];
  for (const slot of slots) {
    const child = String(slot["child_id"]);
    const take = updateStep(DELEGATION_SLOTS, String(slot["id"]), { child_id: child }, set);
    const row = await engine.get(DELEGATIONS, child);
    if (row?.["state"] !== "active") ended.push([take]);
    else late.push([requireStep(DELEGATIONS, child, LATE), take]);
  }
  return [...ended, ...late];
}

/** Time decides in the transaction, by the store's clock. */
const LATE = { expires_at: { atMost: { nowPlusMs: -1 } } } as const;

export type BoundKind = "spends-a-call" | "goes-on";

/** What is about to be executed, as far as delegations limit it. */
export interface DelegatedEffect {
  readonly sessionId: DelegationId;
  readonly undoOf: OperationId | "";
  readonly actor: string;
}

/**
 * Conditions of the transaction in which a delegated session acts, looked up by the session's id. An undo is limited by the
 * delegations of its requester.
 */
export async function boundSteps(
  engine: TenantEngine,
  { sessionId, undoOf, actor }: DelegatedEffect,
  kind: BoundKind,
): Promise<readonly Step[]> {
  const row = await engine.get(DELEGATIONS, sessionId);
  // Its name is that of a delegated session. If there is no such delegation, this step does not hold.
  if (row === undefined) return delegationSteps([sessionId], kind);
  const delegation = DELEGATIONS.read(row);
  return delegationSteps(undoOf === "" ? delegation.chain : boundTo(delegation, actor), kind);
}

/**
 * Conditions for a write by a sub-agent: every delegation of its chain is active. Starting an effect spends one call of each,
 * so that all children together never make more calls than their parent may.
 */
export function delegationSteps(chain: readonly DelegationId[], kind: BoundKind): readonly Step[] {
  const alive = { state: "active", expires_at: { atLeast: NOW } };
  const hasCalls = { ...alive, calls_left: { atLeast: 1 } };
  return chain.map((id) =>
    kind === "goes-on"
      ? requireStep(DELEGATIONS, id, alive)
      : updateStep(DELEGATIONS, id, hasCalls, { calls_left: { plus: -1 } }),
  );
}
