import { SallyportError } from "../model/errors.ts";
import type { FlowSnapshot, FlowStateStore } from "../model/flow-state.ts";
import { checkName, type Instant, isName } from "../model/names.ts";
import { sha256Hex } from "../util/hash.ts";
import { MAX_LIST } from "./decisions.ts";
import {
  type Conditions,
  type EventPlan,
  NOW,
  type Row,
  type Step,
  type Table,
  type Values,
} from "./engine.ts";
import { instantIn } from "./readable.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** Snapshots of flows beside everything else, for any number of processes. Each save and removal is in the trail. */
export interface DurableFlowStates extends FlowStateStore {
  /** Removes what has expired, at most `limit`; loading takes no notice of it anyway. Answers how many. */
  sweep(limit?: number): Promise<number>;
  /** What has not come to its end, oldest first: whoever starts resumes these, or finds that they still wait. */
  unfinished(query?: UnfinishedQuery): Promise<readonly UnfinishedFlow[]>;
}

export interface UnfinishedQuery {
  /** Only those begun after this one (`ord`). */
  readonly after?: number;
  readonly limit?: number;
}

export interface UnfinishedFlow {
  readonly conversationId: string;
  readonly sessionId: string;
  /** The node that ran last. */
  readonly node: string;
  readonly updatedAt: Instant;
  /** For paging. */
  readonly ord: number;
}

/** From the next millisecond on: what expires now is gone. */
const ALIVE = { expires_at: { atLeast: { nowPlusMs: 1 } } } as const;

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
    const data = { node, phase, step: current_step, revision };
    const hashes = { state: String(row["hash"]) };
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
    const step: Step = { op: "delete", table: FLOW_STATES, id, where };
    return (await engine.commit({ steps: [step], events: [event] })).committed;
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
      // A query and not a look at the row: whether it has expired is for the store's clock to say.
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
      return rows.map((row) => ({
        conversationId: String(row["id"]),
        sessionId: String(row["session_id"]),
        node: String(row["node"]),
        updatedAt: instantIn(row, "updated_at"),
        ord: Number(row["ord"]),
      }));
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

/** The one snapshot of each conversation, whose id is the row's. */
export const FLOW_STATES: Table = {
  name: "flow_states",
  columns: {
    session_id: "text",
    trace_id: "text",
    node: "text",
    revision: "int",
    hash: "text",
    snapshot: "text",
    expires_at: "int",
    updated_at: "int",
  },
  indexed: ["expires_at"],
};

function rowOfFlowState(snapshot: FlowSnapshot, keepMs: number): Values {
  const text = JSON.stringify(snapshot);
  return {
    session_id: snapshot.session_id,
    trace_id: snapshot.state.common_state.trace_id,
    node: snapshot.node,
    revision: snapshot.revision,
    hash: sha256Hex(text),
    snapshot: text,
    expires_at: { nowPlusMs: keepMs },
    updated_at: NOW,
  };
}

/** Throws damaged_record when the text is not the one that the trail tells of. */
function flowStateOf(row: Row): FlowSnapshot {
  const text = String(row["snapshot"]);
  if (sha256Hex(text) !== row["hash"]) {
    const hint = "Compare with flow.saved in the audit trail before you let this run go on.";
    throw new SallyportError("damaged_record", { id: String(row["id"]), column: "hash", hint });
  }
  return JSON.parse(text) as FlowSnapshot;
}
