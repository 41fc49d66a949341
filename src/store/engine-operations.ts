import type { SessionId } from "../model/decision.ts";
import { DECISIONS } from "../model/decision.ts";
import { boundTo, DELEGATIONS, isDelegated } from "../model/delegation.ts";
import { SallyportError } from "../model/errors.ts";
import { DECOYS } from "../model/identity.ts";
import { INTERACTIONS } from "../model/interaction.ts";
import { checkName, isName } from "../model/names.ts";
import { OPERATIONS, type Operation, type OperationId } from "../model/operation.ts";
import { invariant } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject } from "../util/json.ts";
import { encodeValue } from "../util/value-codec.ts";
import { MAX_LIST } from "./decisions.ts";
import { delegationSteps } from "./delegations.ts";
import {
  type Along,
  along,
  type Conditions,
  type EventPlan,
  NOW,
  type Row,
  type Step,
} from "./engine.ts";
import {
  type Intent,
  type Narrow,
  type OperationStore,
  type Reopening,
  rowOfIntent,
  rowOfOutcome,
  type Settlement,
  type StartAnswer,
  type StartRefusal,
} from "./operations.ts";
import { RUNNING } from "./switch.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** Operations over any engine. */
export function engineOperations(engine: TenantEngine): OperationStore {
  return {
    start: (intent) => start(engine, intent),
    settle: (id, settlement) => settle(engine, id, settlement),
    takeOver: (id, leaseMs, actor, holds = []) =>
      again(engine, id, {
        where: { status: "started", lease_until: { atMost: NOW } },
        type: "operation.taken_over",
        leaseMs,
        actor,
        along: holds,
      }),
    reopen: (id, again_) =>
      again(engine, id, { ...again_, where: { status: "unknown" }, type: "operation.reopened" }),
    tryAgain: (id, fence, how) =>
      again(engine, id, {
        ...how,
        where: { status: "started", fence },
        type: "operation.attempted",
      }),
    confirm: (id, fence, how) =>
      again(engine, id, {
        ...how,
        where: { status: "started", fence, lease_until: { atLeast: NOW } },
        type: "operation.renewed",
      }),
    async renew(id, fence, leaseMs) {
      const result = await engine.commit({
        steps: [
          {
            op: "update",
            table: OPERATIONS,
            id,
            where: { status: "started", fence, lease_until: { atLeast: NOW } },
            set: { lease_until: { nowPlusMs: leaseMs } },
          },
        ],
        events: [told("operation.renewed", 0, "executor")],
      });
      return result.committed;
    },
    async get(id) {
      const row = isName(id) ? await engine.get(OPERATIONS, id) : undefined;
      if (row === undefined) throw new SallyportError("not_found", { id: String(id) });
      return OPERATIONS.read(row);
    },
    listBySession: (sessionId, narrow = {}) => listBySession(engine, sessionId, narrow),
    async listNewest(sessionId, { before, limit }) {
      checkName("session id", sessionId);
      const from = before === undefined ? {} : { beforeOrd: before };
      const where = { session_id: sessionId };
      const query = { where, ...from, newestFirst: true, limit: limit + 1 } as const;
      const rows = await engine.find(OPERATIONS, query);
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

/** All of it, page by page: a list that ended early would hide what was done last from whoever takes it back. */
async function listBySession(
  engine: TenantEngine,
  sessionId: string,
  { messageId, decisionId, without }: Narrow,
): Promise<readonly Operation[]> {
  checkName("session id", sessionId);
  const where = {
    session_id: sessionId,
    ...(messageId === undefined ? {} : { message_id: messageId }),
    ...(decisionId === undefined ? {} : { decision_id: decisionId }),
  };
  const all: Operation[] = [];
  for (let afterOrd = 0; ; ) {
    const page = await engine.find(OPERATIONS, { where, afterOrd, limit: MAX_LIST });
    const found = page.map(OPERATIONS.read);
    all.push(...(without === "reads" ? found.filter((one) => !onlyRead(one)) : found));
    if (page.length < MAX_LIST) return all;
    afterOrd = Number(page.at(-1)?.["ord"]);
  }
}

/** What a read tool did changes nothing, unless it left a way to take it back. */
function onlyRead({ effect, undo, undoOf }: Operation): boolean {
  return effect === "read" && undo === undefined && undoOf === "";
}

/** The right to call a tool, again or still: not while everything is stopped, and not when the delegation behind it has ended. */
async function again(
  engine: TenantEngine,
  id: string,
  how: Reopening & { readonly where: Conditions; readonly type: string },
): Promise<Operation | undefined> {
  const { where, type, leaseMs, actor } = how;
  const own: Along = {
    step: {
      op: "update",
      table: OPERATIONS,
      id,
      where,
      set: {
        lease_until: { nowPlusMs: leaseMs },
        ...(type === "operation.renewed" ? {} : NEW_ATTEMPT),
      },
    },
    event: (step) => told(type, step, actor),
  };
  const row = await engine.get(OPERATIONS, id);
  const before = row === undefined ? [] : await boundSteps(engine, boundOf(row, actor), "goes-on");
  const held = before.map((step): Along => ({ step }));
  const result = await engine.commit(along([{ step: RUNNING }, own, ...how.along, ...held]));
  return result.committed ? OPERATIONS.read(result.rows[1] ?? {}) : undefined;
}

const NEW_ATTEMPT = {
  status: "started",
  attempt: { plus: 1 },
  fence: { plus: 1 },
  updated_at: NOW,
} as const;

/** Who goes on with an undo does so for the one who asked for it. */
function boundOf(row: Row, actor: string): Bound {
  const { sessionId, undoOf, chain } = OPERATIONS.read(row);
  return { sessionId, undoOf, actor: chain[0] ?? actor };
}

/** What must hold for each kind of start, in this order; the index of the one that does not names the refusal. */
async function start(engine: TenantEngine, intent: Intent): Promise<StartAnswer> {
  checkName("operation id", intent.id);
  checkName("session id", intent.sessionId);
  checkName("tool", intent.tool);
  checkName("actor", intent.actor);
  const required: [StartRefusal, Step][] = [["stopped", RUNNING]];
  if (intent.approval !== undefined) {
    const { decisionId: id, hash } = intent.approval;
    const look = { op: "require", id, absent: "refuses" } as const;
    required.push(
      ["not_approved", { ...look, table: DECISIONS, where: { state: "approved" } }],
      [
        "expired_or_changed",
        { ...look, table: INTERACTIONS, where: { hash, deadline: { atLeast: NOW } } },
      ],
      // A known-bad call that was only shown to see whether people look. No row fits, so one that is there refuses.
      ["not_approved", { op: "require", table: DECOYS, id, where: NONE, absent: "holds" }],
    );
  }
  for (const { refusal, step } of intent.holds ?? []) required.push([refusal, step]);
  for (const step of await boundSteps(engine, intent, "spends-a-call")) {
    required.push(["delegation_ended", step]);
  }
  required.push([
    "used_up",
    { op: "insert", table: OPERATIONS, id: intent.id, row: rowOfIntent(intent) },
  ]);
  const result = await engine.commit({
    steps: required.map(([, step]) => step),
    events: [
      {
        ...told("operation.started", required.length - 1, intent.actor, {
          tool: intent.tool,
          definition: intent.definitionHash,
          decision: intent.approval?.decisionId ?? "",
          step: intent.step,
          undo_of: intent.undoOf,
          ...(intent.allowedBy === undefined ? {} : { allowed_by: intent.allowedBy }),
        }),
        hashes: { input: sha256Hex(intent.input) },
      },
    ],
  });
  if (result.committed) {
    return { started: true, operation: OPERATIONS.read(result.rows.at(-1) ?? {}) };
  }
  const reason = required[result.step]?.[0];
  invariant(reason !== undefined, "a refusal names a step");
  return reason === "used_up" && result.current !== undefined
    ? { started: false, reason, operation: OPERATIONS.read(result.current) }
    : { started: false, reason };
}

async function settle(
  engine: TenantEngine,
  id: string,
  { fence, outcome, closes, tookBack, broughtBack = [], along: others = [], actor }: Settlement,
) {
  const parts: Along[] = [
    {
      step: {
        op: "update",
        table: OPERATIONS,
        id,
        where: { fence, status: { oneOf: ["started", "unknown"] } },
        set: rowOfOutcome(outcome),
      },
      event: (step) => ({
        ...told(`operation.${EVENTS[outcome.status]}`, step, actor, factsOf(outcome)),
        ...(hasUndoOrOutput(outcome) ? { hashes: hashesOf(outcome) } : {}),
      }),
    },
  ];
  if (tookBack !== undefined) {
    parts.push({
      step: {
        op: "update",
        table: OPERATIONS,
        id: tookBack,
        where: { status: { oneOf: ["success", "failed"] } },
        set: { status: "rolled_back", updated_at: NOW },
      },
      event: (step) => told("operation.undone", step, actor, { by: id }),
    });
  }
  for (const { id: earlier, from, to } of broughtBack) {
    const hashes = { version: sha256Hex(to.toWellFormed()) };
    parts.push({
      step: {
        op: "update",
        table: OPERATIONS,
        id: earlier,
        where: { status: "success", state_version: encodeValue(from) },
        set: { state_version: encodeValue(to), updated_at: NOW },
      },
      event: (step) => ({
        ...told("operation.brought_back", step, actor, { by: id }),
        hashes,
      }),
    });
  }
  if (closes !== undefined) parts.push(closes);
  const result = await engine.commit(along([...parts, ...others]));
  const row = result.committed ? result.rows[0] : await engine.get(OPERATIONS, id);
  if (row === undefined) throw new SallyportError("not_found", { id });
  return { settled: result.committed, operation: OPERATIONS.read(row) };
}

const NONE = { created_at: -1 } as const;

const EVENTS = { success: "succeeded", failed: "failed", unknown: "lost" } as const;

function factsOf(outcome: Settlement["outcome"]): JsonObject {
  if (outcome.status !== "success") return { error: outcome.error.toWellFormed() };
  const { truncated, undo } = outcome;
  return {
    truncated,
    undo: undo === undefined ? "none" : undo.irreversible ? "irreversible" : "tool",
  };
}

type Settled = Settlement["outcome"] & { readonly status: "success" | "failed" };

function hasUndoOrOutput(outcome: Settlement["outcome"]): outcome is Settled {
  return (
    outcome.status === "success" || (outcome.status === "failed" && outcome.undo !== undefined)
  );
}

function hashesOf({ output, undo, stateVersion = "" }: Settled): Record<string, string> {
  return {
    output: sha256Hex(output.toWellFormed()),
    // Whoever takes it back later goes by these two, so nobody may change them unnoticed.
    ...(undo === undefined ? {} : { undo: sha256Hex(encodeValue(undo)) }),
    ...(stateVersion === "" ? {} : { version: sha256Hex(stateVersion.toWellFormed()) }),
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

/** What is about to be carried out, as far as delegations care. */
interface Bound {
  readonly sessionId: SessionId;
  readonly undoOf: OperationId | "";
  readonly actor: string;
}

/**
 * What must hold in the transaction that lets a session act, because somebody delegated to it. Found by the session's id
 * alone, here where every effect begins, so that no path has to remember it. Whoever takes back what a sub-agent did is bound
 * by what binds themselves.
 */
async function boundSteps(
  engine: TenantEngine,
  { sessionId, undoOf, actor }: Bound,
  kind: Parameters<typeof delegationSteps>[1],
): Promise<readonly Step[]> {
  if (!isDelegated(sessionId)) return [];
  const row = await engine.get(DELEGATIONS, sessionId);
  // Its name says that somebody delegated to it. When nobody has, this step will not hold.
  if (row === undefined) return delegationSteps([sessionId], kind);
  const delegation = DELEGATIONS.read(row);
  return delegationSteps(undoOf === "" ? delegation.chain : boundTo(delegation, actor), kind);
}
