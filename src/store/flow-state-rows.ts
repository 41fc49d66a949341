import { SallyportError } from "../model/errors.ts";
import type { FlowSnapshot } from "../model/flow-state.ts";
import { sha256Hex } from "../util/hash.ts";
import { NOW, type Row, type Table, type Values } from "./engine.ts";

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

export function rowOfFlowState(snapshot: FlowSnapshot, keepMs: number): Values {
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
export function flowStateOf(row: Row): FlowSnapshot {
  const text = String(row["snapshot"]);
  if (sha256Hex(text) !== row["hash"]) {
    const hint = "Compare with flow.saved in the audit trail before you let this run go on.";
    throw new SallyportError("damaged_record", { id: String(row["id"]), column: "hash", hint });
  }
  return JSON.parse(text) as FlowSnapshot;
}
