import type { JsonObject } from "../util/json.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** What was refused is told in the trail as well: the one kind of entry that no change of state goes with. */
export interface RefusalLog {
  record(refusal: Refusal): Promise<void>;
}

export interface Refusal {
  readonly callId: string;
  readonly sessionId: string;
  readonly actor: string;
  /** Tool, findings, policy: never the input. */
  readonly data: JsonObject;
}

export function engineRefusals(engine: TenantEngine): RefusalLog {
  return {
    async record({ callId, sessionId, actor, data }) {
      await engine.commit({
        steps: [],
        events: [{ type: "call.denied", subject: callId, session: sessionId, actor, data }],
      });
    },
  };
}
