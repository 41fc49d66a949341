import type { SessionId } from "../model/decision.ts";
import {
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
import type { CompletionPromise } from "../model/promise.ts";
import { invariant } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject } from "../util/json.ts";
import { checkReason } from "./decision-rows.ts";
import type { By } from "./decisions.ts";
import { type EventPlan, NOW, type NowPlus, type Step, type Values } from "./engine.ts";
import { everyOne } from "./readable.ts";
import { RUNNING } from "./switch.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** Who was handed what. Every change is one transaction with its audit entry; the store's clock decides about time. */
export interface DelegationStore {
  /** Refuses when what the parent hangs on is over, when it may not give that much, or when too many work for it already. */
  create(draft: NewDelegation): Promise<CreateAnswer>;
  /** Throws not_found. */
  get(id: DelegationId): Promise<Delegation>;
  /** The one itself last, those it hangs on before it. Throws not_found. */
  chainOf(id: DelegationId): Promise<readonly Delegation[]>;
  /** Why nothing can be done under it any more, as a sentence; undefined while it and all it hangs on are alive. */
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
  close(id: DelegationId, closing: Closing, by: By): Promise<Delegation>;
  /** What was not handed over is told in the trail as well. */
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

export type Closing =
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
  async function get(id: DelegationId): Promise<Delegation> {
    const row = isDelegated(id) ? await engine.get(DELEGATIONS, id) : undefined;
    if (row === undefined) throw new SallyportError("not_found", { id: String(id) });
    return DELEGATIONS.read(row);
  }

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
          { op: "insert", table: DELEGATIONS, id: draft.id, row },
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
        // The slot is in use, or somebody took it at this moment; another one may be free.
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
      // Nobody has more time than those above, so its own time is enough to look at.
      const late = await engine.find(DELEGATIONS, { where: { id, ...OVERDUE }, limit: 1 });
      return late.length > 0 ? `The time of ${id} is over.` : undefined;
    },
    async list({ rootSession, parentSession }) {
      const where = {
        ...(rootSession === undefined ? {} : { root_session: rootSession }),
        ...(parentSession === undefined ? {} : { parent_session: parentSession }),
      };
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
      const event = {
        type: "delegation.refused",
        subject: planId,
        session: sessionId,
        actor,
        data,
      };
      await engine.commit({ steps: [], events: [event] });
    },
  };
}

/** Everybody above must be alive, and have as many calls and as much time as is given away. */
function parentSteps({ parent, scope, ttlMs }: NewDelegation): [CreateRefusal, Step][] {
  const where = {
    state: "active",
    expires_at: { atLeast: { nowPlusMs: ttlMs ?? 0 } },
    calls_left: { atLeast: scope.calls },
  };
  return (parent?.chain ?? []).map((id): [CreateRefusal, Step] => [
    "parent_exceeded",
    { op: "require", table: DELEGATIONS, id, where, absent: "refuses" },
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
  closing: Closing,
  { actor }: By,
): Promise<Delegation> {
  checkName("actor", actor);
  const found = isDelegated(id) ? await engine.get(DELEGATIONS, id) : undefined;
  if (found === undefined) throw new SallyportError("not_found", { id: String(id) });
  const own = DELEGATIONS.read(found);
  const { set, data, hashes } = closingOf(closing);
  const alive = closing.state === "reported" ? { expires_at: { atLeast: NOW } } : {};
  const update: Step = {
    op: "update",
    table: DELEGATIONS,
    id,
    where: { state: "active", ...alive },
    set: { ...set, state: closing.state, updated_at: NOW },
  };
  // A report of somebody who was stopped from above is not taken; to fail or to be revoked is always possible.
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
        ...(hashes === undefined ? {} : { hashes }),
      },
    ],
  });
  if (result.committed) return DELEGATIONS.read(result.rows[0] ?? {});
  const now = DELEGATIONS.read((await engine.get(DELEGATIONS, id)) ?? found);
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

function closingOf(closing: Closing): ClosingFacts {
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
    return [[{ op: "insert", table: DELEGATION_SLOTS, id: slotId, row }]];
  }
  const ended: Step[][] = [];
  const late: Step[][] = [];
  for (const slot of slots) {
    const child = String(slot["child_id"]);
    const take: Step = {
      op: "update",
      table: DELEGATION_SLOTS,
      id: String(slot["id"]),
      where: { child_id: child },
      set,
    };
    const row = await engine.get(DELEGATIONS, child);
    if (row?.["state"] !== "active") ended.push([take]);
    else late.push([{ ...LATE, id: child }, take]);
  }
  return [...ended, ...late];
}

/** Time decides in the transaction, by the store's clock. */
const LATE = {
  op: "require",
  table: DELEGATIONS,
  where: { expires_at: { atMost: { nowPlusMs: -1 } } },
  absent: "refuses",
} as const;

/**
 * Everything a sub-agent hangs on must hold at the moment something is written: put these in front of it. Whatever starts an
 * effect spends a call of each of them, so that all children together never make more than their parent may.
 */
export function delegationSteps(
  chain: readonly DelegationId[],
  kind: "spends-a-call" | "goes-on",
): readonly Step[] {
  const alive = { state: "active", expires_at: { atLeast: NOW } };
  return chain.map((id): Step => {
    if (kind === "goes-on") {
      return { op: "require", table: DELEGATIONS, id, where: alive, absent: "refuses" };
    }
    return {
      op: "update",
      table: DELEGATIONS,
      id,
      where: { ...alive, calls_left: { atLeast: 1 } },
      set: { calls_left: { plus: -1 } },
    };
  });
}
