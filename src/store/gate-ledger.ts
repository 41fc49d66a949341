import { SallyportError } from "../model/errors.ts";
import type { Finding } from "../model/finding.ts";
import type { JsonObject } from "../util/json.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** What gates have said, in the trail: an entry that no change of state goes with, like a refusal. */
export interface GateLedger {
  record(evaluation: GateEvaluation): Promise<void>;
}

export interface GateEvaluation {
  readonly traceId: string;
  readonly point: string;
  readonly sessionId: string;
  readonly actor: string;
  readonly allowed: boolean;
  readonly findings: readonly Finding[];
  readonly overridden: readonly { readonly finding: Finding; readonly grant: string }[];
}

export function engineGateLedger(engine: TenantEngine): GateLedger {
  return {
    async record({ traceId, point, sessionId, actor, allowed, findings, overridden }) {
      const shown = ({ severity, policy, message }: Finding) => ({
        severity,
        policy: policy.toWellFormed(),
        message: message.toWellFormed(),
      });
      const data = {
        point,
        allowed,
        findings: findings.map(shown),
        overridden: overridden.map(({ finding, grant }) => ({ ...shown(finding), grant })),
      };
      const event = { type: "gate.evaluated", subject: traceId, session: sessionId, actor, data };
      const result = await engine.commit({ steps: [], events: [event] });
      if (!result.committed) throw new SallyportError("store_unavailable", { id: traceId });
    },
  };
}

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
