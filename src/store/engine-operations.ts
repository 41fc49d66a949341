import { SallyportError } from "../model/errors.ts";
import { checkName, isName } from "../model/names.ts";
import { sha256Hex } from "../util/hash.ts";
import { invariant } from "../util/invariant.ts";
import type { JsonObject } from "../util/json.ts";
import { APPROVALS } from "./approval-rows.ts";
import { DECISIONS } from "./decision-rows.ts";
import { MAX_LIST } from "./decisions.ts";
import { type EventPlan, NOW, type Step } from "./engine.ts";
import { OPERATIONS, operationOf, rowOfIntent, rowOfOutcome } from "./operation-rows.ts";
import type {
  Intent,
  OperationStore,
  Settlement,
  StartAnswer,
  StartRefusal,
} from "./operations.ts";
import { RUNNING } from "./switch-rows.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** Operations over any engine. */
export function engineOperations(engine: TenantEngine): OperationStore {
  return {
    start: (intent) => start(engine, intent),
    settle: (id, settlement) => settle(engine, id, settlement),
    async takeOver(id, leaseMs, actor) {
      const result = await engine.commit({
        steps: [
          // To go on may mean to call the tool once more, and that is a new effect.
          RUNNING,
          {
            op: "update",
            table: OPERATIONS,
            id,
            where: { status: "started", lease_until: { atMost: NOW } },
            set: {
              attempt: { plus: 1 },
              fence: { plus: 1 },
              lease_until: { nowPlusMs: leaseMs },
              updated_at: NOW,
            },
          },
        ],
        events: [told("operation.taken_over", 1, actor)],
      });
      return result.committed ? operationOf(result.rows[1] ?? {}) : undefined;
    },
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
      return operationOf(row);
    },
    async listBySession(sessionId, { messageId, decisionId } = {}) {
      checkName("session id", sessionId);
      const where = {
        session_id: sessionId,
        ...(messageId === undefined ? {} : { message_id: messageId }),
        ...(decisionId === undefined ? {} : { decision_id: decisionId }),
      };
      return (await engine.find(OPERATIONS, { where, limit: MAX_LIST })).map(operationOf);
    },
    async listAbandoned(limit) {
      const where = { status: "started", lease_until: { atMost: NOW } };
      return (await engine.find(OPERATIONS, { where, limit })).map(operationOf);
    },
  };
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
        { ...look, table: APPROVALS, where: { hash, expires_at: { atLeast: NOW } } },
      ],
    );
  }
  required.push([
    "used_up",
    { op: "insert", table: OPERATIONS, id: intent.id, row: rowOfIntent(intent) },
  ]);
  const result = await engine.commit({
    steps: required.map(([, step]) => step),
    events: [
      told("operation.started", required.length - 1, intent.actor, {
        tool: intent.tool,
        definition: intent.definitionHash,
        input_sha256: sha256Hex(intent.input),
        decision: intent.approval?.decisionId ?? "",
        step: intent.step,
        undo_of: intent.undoOf,
      }),
    ],
  });
  if (result.committed) {
    return { started: true, operation: operationOf(result.rows.at(-1) ?? {}) };
  }
  const reason = required[result.step]?.[0];
  invariant(reason !== undefined, "a refusal names a step");
  return reason === "used_up" && result.current !== undefined
    ? { started: false, reason, operation: operationOf(result.current) }
    : { started: false, reason };
}

async function settle(
  engine: TenantEngine,
  id: string,
  { fence, outcome, closes, tookBack, actor }: Settlement,
) {
  const events = [told(`operation.${EVENTS[outcome.status]}`, 0, actor, factsOf(outcome))];
  const steps: Step[] = [
    {
      op: "update",
      table: OPERATIONS,
      id,
      where: { fence, status: { oneOf: ["started", "unknown"] } },
      set: rowOfOutcome(outcome),
    },
  ];
  if (tookBack !== undefined) {
    events.push(told("operation.undone", steps.length, actor, { by: id }));
    steps.push({
      op: "update",
      table: OPERATIONS,
      id: tookBack,
      where: { status: "success" },
      set: { status: "rolled_back", updated_at: NOW },
    });
  }
  if (closes !== undefined) {
    events.push(closes.event(steps.length));
    steps.push(closes.step);
  }
  const result = await engine.commit({ steps, events });
  const row = result.committed ? result.rows[0] : await engine.get(OPERATIONS, id);
  if (row === undefined) throw new SallyportError("not_found", { id });
  return { settled: result.committed, operation: operationOf(row) };
}

const EVENTS = { success: "succeeded", failed: "failed", unknown: "lost" } as const;

function factsOf(outcome: Settlement["outcome"]): JsonObject {
  if (outcome.status !== "success") return { error: outcome.error.toWellFormed() };
  return {
    output_sha256: sha256Hex(outcome.output.toWellFormed()),
    truncated: outcome.truncated,
    undo: outcome.undo === undefined ? "none" : outcome.undo.irreversible ? "irreversible" : "tool",
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
