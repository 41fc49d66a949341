import type { DecisionId, SessionId } from "../model/decision.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { sha256Hex } from "../util/hash.ts";
import { NOW, type Step, type Table } from "./engine.ts";

/** Which decision a keyed call of a session led to, so that the same call asked for again finds it instead of a second one. */
export const CALL_KEYS: Table = {
  name: "call_keys",
  columns: { decision_id: "text", step: "int", action_hash: "text", created_at: "int" },
  indexed: [],
};

/** One call that may be asked for again. */
export interface CallKey {
  readonly key: string;
  /** Its place among the calls of the decision, from 0. */
  readonly step: number;
  /** SHA-256 of tool and input: the same key with another content is a mistake. */
  readonly actionHash: string;
}

/** One id per session and key, the same in every process; also the id of what such a call becomes. */
export function callKeyId(sessionId: SessionId, key: string): string {
  return `k-${sha256Hex(canonicalJson([sessionId, key]))}`;
}

export function callKeyStep(sessionId: SessionId, decisionId: DecisionId, call: CallKey): Step {
  return {
    op: "insert",
    table: CALL_KEYS,
    id: callKeyId(sessionId, call.key),
    row: {
      decision_id: decisionId,
      step: call.step,
      action_hash: call.actionHash,
      created_at: NOW,
    },
  };
}
