import { FLOW_STATES, type FlowSnapshot, type FlowStateStore } from "../model/flow-state.ts";
import { checkName, isName } from "../model/names.ts";
import type { RecordOf } from "../model/record.ts";
import { damaged, MAX_LIST } from "../model/record.ts";
import { sha256Hex } from "../util/hash.ts";
import {
  type Conditions,
  deleteStep,
  type EventPlan,
  insertStep,
  NOW,
  type Row,
  type Step,
  updateStep,
} from "./engine.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** Snapshots of flows beside everything else, for any number of processes. Each save and removal is in the trail. */
export interface DurableFlowStates extends FlowStateStore {
  /** Removes expired snapshots, at most `limit`, and returns how many. Loading ignores them anyway. */
  sweep(limit?: number): Promise<number>;
  /** Unfinished runs, oldest first. A process that starts resumes them, or finds that they still wait. */
  unfinished(query?: UnfinishedQuery): Promise<readonly UnfinishedFlow[]>;
}

export interface UnfinishedQuery {
  /** Only those begun after this one (`ord`). */
  readonly after?: number;
  readonly limit?: number;
}

export type UnfinishedFlow = Pick<
  RecordOf<typeof FLOW_STATES>,
  "conversationId" | "sessionId" | "node" | "updatedAt" | "ord"
>;

/** From the next millisecond on: a snapshot that expires now is gone. */
const ALIVE = { expires_at: { atLeast: { nowPlusMs: 1 } } } as const;

const FLOW = "flow";

export function engineFlowStates(engine: TenantEngine): DurableFlowStates {
  async function put(snapshot: FlowSnapshot, keepMs: number, where: Conditions | "new") {
    const { conversation_id: id, node, revision, state } = snapshot;
    const text = JSON.stringify(snapshot);
    const hash = sha256Hex(text);
    const row = FLOW_STATES.row({
      sessionId: snapshot.session_id,
      traceId: state.common_state.trace_id,
      node,
      revision,
      hash,
      snapshot: text,
      expiresAt: { nowPlusMs: keepMs },
      updatedAt: NOW,
    });
    const step: Step =
      where === "new" ? insertStep(FLOW_STATES, id, row) : updateStep(FLOW_STATES, id, where, row);
    const { phase, current_step } = state.common_state;
    const data = { node, phase, step: current_step, revision };
    const hashes = { state: hash };
    const event = { type: "flow.saved", subject: id, session: snapshot.session_id, actor: FLOW };
    return (await engine.commit({ steps: [step], events: [{ ...event, data, hashes }] })).committed;
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
    const steps = [deleteStep(FLOW_STATES, id, where)];
    return (await engine.commit({ steps, events: [event] })).committed;
  }

  return {
    async save(snapshot, { keepMs }) {
      checkName("conversation", snapshot.conversation_id);
      const { revision } = snapshot;
      if (revision > 1) return put(snapshot, keepMs, { revision: revision - 1, ...ALIVE });
      // The first of a run: there is none, or what is there has expired.
      if (await put(snapshot, keepMs, "new")) return true;
      return put(snapshot, keepMs, { expires_at: { atMost: NOW } });
    },
    async load(conversationId) {
      if (!isName(conversationId)) return { found: false };
      // A query instead of a look at the row, because the store's clock decides whether it has expired.
      const where = { id: conversationId, ...ALIVE };
      const [row] = await engine.find(FLOW_STATES, { where, limit: 1 });
      return row === undefined ? { found: false } : { found: true, snapshot: flowStateOf(row) };
    },
    async delete(conversationId, traceId) {
      if (!isName(conversationId)) return;
      await remove(conversationId, "flow.deleted", { trace_id: traceId });
    },
    async unfinished({ after = 0, limit = MAX_LIST } = {}) {
      const rows = await engine.find(FLOW_STATES, { where: ALIVE, afterOrd: after, limit });
      return rows.map((row) => {
        const { conversationId, sessionId, node, updatedAt, ord } = FLOW_STATES.read(row);
        return { conversationId, sessionId, node, updatedAt, ord };
      });
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

/** Throws damaged_record when the text is not the one that the trail recorded. */
function flowStateOf(row: Row): FlowSnapshot {
  const { snapshot, hash } = FLOW_STATES.read(row);
  if (sha256Hex(snapshot) !== hash) throw damaged(row, "hash");
  return JSON.parse(snapshot) as FlowSnapshot;
}
