import {
  type Delegation,
  type DelegationId,
  isDelegationState,
  isRole,
  isWritePermission,
  type Scope,
} from "../model/delegation.ts";
import type { CompletionPromise } from "../model/promise.ts";
import { encoded } from "./decision-rows.ts";
import type { NewDelegation } from "./delegations.ts";
import { NOW, type Row, type Step, type Table, type Value, type Values } from "./engine.ts";
import { damaged, decoded, instantIn } from "./readable.ts";

/** How a delegation lies in a row; its key is the sub-agent's session id. */
export const DELEGATIONS: Table = {
  name: "delegations",
  columns: {
    parent_session: "text",
    root_session: "text",
    run_id: "text",
    trace_id: "text",
    plan_id: "text",
    promise_id: "text",
    role: "text",
    write_permission: "text",
    state: "text",
    chain: "text",
    agents: "text",
    owner: "text",
    task: "text",
    capsule: "text",
    promise: "text",
    scope: "text",
    working_directory: "text",
    token_hash: "text",
    calls_left: "int",
    expires_at: "int",
    output: "text",
    promise_met: "int",
    reason: "text",
    created_at: "int",
    updated_at: "int",
  },
  indexed: ["parent_session", "root_session", "state"],
};

/** Places for children beside each other. A parent has a few, and a child needs one, so no race gives it more children. */
export const DELEGATION_SLOTS: Table = {
  name: "delegation_slots",
  columns: { parent_session: "text", child_id: "text", updated_at: "int" },
  indexed: ["parent_session"],
};

type Places = Pick<Scope, "planFiles" | "documents" | "artefact" | "tools" | "depth">;

export function rowOfDelegation(draft: NewDelegation, expiresAt: Value): Values {
  const { scope } = draft;
  const { planFiles, documents, artefact, tools, depth } = scope;
  const places: Places = { planFiles, documents, artefact, tools, depth };
  return {
    parent_session: draft.parentSession,
    root_session: draft.rootSession,
    run_id: draft.runId,
    trace_id: draft.traceId,
    plan_id: scope.planId,
    promise_id: draft.promise.id,
    role: scope.role,
    write_permission: scope.writePermission,
    state: "active",
    chain: encoded("chain", [...(draft.parent?.chain ?? []), draft.id]),
    agents: encoded("agents", draft.agents),
    owner: draft.owner,
    task: encoded("task", draft.task),
    capsule: encoded("capsule", draft.capsule),
    promise: encoded("promise", draft.promise),
    scope: encoded("scope", places),
    working_directory: encoded("working directory", draft.workingDirectory),
    token_hash: draft.tokenHash,
    calls_left: scope.calls,
    expires_at: expiresAt,
    output: null,
    promise_met: null,
    reason: null,
    created_at: NOW,
    updated_at: NOW,
  };
}

/** Checked again after reading: a row that was changed from outside binds nobody less than it did. */
export function delegationOf(row: Row): Delegation {
  const { id, state, role, write_permission: writePermission } = row;
  if (!isDelegationState(state)) throw damaged(row, "state");
  if (!isRole(role)) throw damaged(row, "role");
  if (!isWritePermission(writePermission)) throw damaged(row, "write_permission");
  const chain = decoded<readonly DelegationId[]>(row, "chain");
  if (!Array.isArray(chain) || chain.at(-1) !== id) throw damaged(row, "chain");
  return {
    id: String(id) as DelegationId,
    state,
    chain,
    agents: decoded(row, "agents"),
    owner: String(row["owner"]),
    parentSession: String(row["parent_session"]),
    rootSession: String(row["root_session"]),
    runId: String(row["run_id"]),
    traceId: String(row["trace_id"]),
    task: decoded(row, "task"),
    capsule: decoded(row, "capsule"),
    promise: decoded<CompletionPromise>(row, "promise"),
    scope: {
      planId: String(row["plan_id"]),
      role,
      writePermission,
      ...decoded<Places>(row, "scope"),
      calls: Number(row["calls_left"]),
      expiresAt: instantIn(row, "expires_at"),
    },
    workingDirectory: decoded(row, "working_directory"),
    tokenHash: String(row["token_hash"]),
    output: row["output"] === null ? "" : decoded(row, "output"),
    promiseMet: row["promise_met"] === null ? undefined : row["promise_met"] === 1,
    reason: row["reason"] === null ? "" : decoded(row, "reason"),
    createdAt: instantIn(row, "created_at"),
    updatedAt: instantIn(row, "updated_at"),
  };
}

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
