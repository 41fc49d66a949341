import type { FlowSnapshot, FlowStateStore } from "../model/flow-state.ts";
import { type Clock, systemClock } from "../util/clock.ts";

interface Kept {
  readonly text: string;
  readonly traceId: string;
  readonly revision: number;
  readonly expiresAt: number;
}

/** A cache in this process: for tests, and for conversations that may end with it. */
export function memoryFlowStates({ clock = systemClock }: { clock?: Clock } = {}): FlowStateStore {
  const kept = new Map<string, Kept>();
  const alive = (id: string): Kept | undefined => {
    const found = kept.get(id);
    if (found === undefined || found.expiresAt > clock.now()) return found;
    kept.delete(id);
    return undefined;
  };
  return {
    async save(snapshot, { keepMs }) {
      const { conversation_id: id, revision } = snapshot;
      if ((alive(id)?.revision ?? 0) !== revision - 1) return false;
      const traceId = snapshot.state.common_state.trace_id;
      // As text, so that what the flow changes afterwards does not change what was saved.
      kept.set(id, {
        text: JSON.stringify(snapshot),
        traceId,
        revision,
        expiresAt: clock.now() + keepMs,
      });
      return true;
    },
    async load(id) {
      const found = alive(id);
      if (found === undefined) return { found: false };
      return { found: true, snapshot: JSON.parse(found.text) as FlowSnapshot };
    },
    async delete(id, traceId) {
      if (kept.get(id)?.traceId === traceId) kept.delete(id);
    },
  };
}
