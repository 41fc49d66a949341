import type { FlowSnapshot, FlowStateStore } from "../model/flow-state.ts";
import { checkName, isName } from "../model/names.ts";
import { MAX_LIST } from "./decisions.ts";
import { type Conditions, type EventPlan, NOW, type Step } from "./engine.ts";
import { FLOW_STATES, flowStateOf, rowOfFlowState } from "./flow-state-rows.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** Snapshots of flows beside everything else, for any number of processes. Each save and removal is in the trail. */
export interface DurableFlowStates extends FlowStateStore {
  /** Removes what has expired, at most `limit`; loading takes no notice of it anyway. Answers how many. */
  sweep(limit?: number): Promise<number>;
}

const FLOW = "flow";

export function engineFlowStates(engine: TenantEngine): DurableFlowStates {
  async function put(snapshot: FlowSnapshot, keepMs: number, where: Conditions | "new") {
    const { conversation_id: id, node, revision, state } = snapshot;
    const row = rowOfFlowState(snapshot, keepMs);
    const step: Step =
      where === "new"
        ? { op: "insert", table: FLOW_STATES, id, row }
        : { op: "update", table: FLOW_STATES, id, where, set: row };
    const { phase, current_step } = state.common_state;
    const data = { node, phase, step: current_step, revision, hash: String(row["hash"]) };
    const event = { type: "flow.saved", subject: id, session: snapshot.session_id, actor: FLOW };
    return (await engine.commit({ steps: [step], events: [{ ...event, data }] })).committed;
  }

  async function remove(id: string, type: string, where: Conditions): Promise<boolean> {
    const event: EventPlan = {
      type,
      subject: id,
      session: { left: "session_id" },
      actor: FLOW,
      data: {},
      facts: { revision: { left: "revision" } },
    };
    const step: Step = { op: "delete", table: FLOW_STATES, id, where };
    return (await engine.commit({ steps: [step], events: [event] })).committed;
  }

  return {
    async save(snapshot, { keepMs }) {
      checkName("conversation", snapshot.conversation_id);
      const { revision } = snapshot;
      if (revision > 1) return put(snapshot, keepMs, { revision: revision - 1 });
      // The first of a run: there is none, or what is there has expired.
      if (await put(snapshot, keepMs, "new")) return true;
      return put(snapshot, keepMs, { expires_at: { atMost: NOW } });
    },
    async load(conversationId) {
      if (!isName(conversationId)) return { found: false };
      // A query and not a look at the row: whether it has expired is for the store's clock to say.
      const after = { nowPlusMs: 1 };
      const where = { id: conversationId, expires_at: { atLeast: after } };
      const [row] = await engine.find(FLOW_STATES, { where, limit: 1 });
      return row === undefined ? { found: false } : { found: true, snapshot: flowStateOf(row) };
    },
    async delete(conversationId, traceId) {
      if (!isName(conversationId)) return;
      await remove(conversationId, "flow.deleted", { trace_id: traceId });
    },
    async sweep(limit = MAX_LIST) {
      const where = { expires_at: { atMost: NOW } };
      const expired = await engine.find(FLOW_STATES, { where, limit });
      let removed = 0;
      for (const { id } of expired) {
        if (await remove(String(id), "flow.expired", where)) removed += 1;
      }
      return removed;
    },
  };
}
