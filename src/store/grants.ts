import { checkReason, type SessionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import {
  type Finding,
  GRANTS,
  type Grant,
  grantId,
  type RecordedGrant,
  USER_GRANT_MS,
} from "../model/finding.ts";
import { checkName } from "../model/names.ts";
import type { JsonObject } from "../util/json.ts";
import type { By } from "./decisions.ts";
import { insertStep, NOW, updateStep } from "./engine.ts";
import { everyOne, getRecord, type TenantEngine, writeRecord } from "./tenant-engine.ts";

/** Permissions to override findings. Each is a person's decision, recorded in the log with their name. */
export interface GrantStore {
  give(grant: NewGrant): Promise<RecordedGrant>;
  /** Throws not_found, and illegal_transition when it was revoked before. */
  revoke(id: Grant["id"], reason: string, by: By): Promise<RecordedGrant>;
  /** Throws not_found. */
  get(id: Grant["id"]): Promise<RecordedGrant>;
  /** Grants of this session and of all sessions, including lapsed ones: the user of a grant checks whether it holds. */
  listFor(sessionId: SessionId): Promise<readonly RecordedGrant[]>;
  /** All of the tenant, oldest first; those after this place (`ord`). */
  list(query: {
    readonly after: number;
    readonly limit: number;
  }): Promise<readonly RecordedGrant[]>;
}

export interface NewGrant {
  /** The session it is for; empty for all of the tenant. */
  readonly sessionId: SessionId;
  readonly finding: Grant["finding"];
  readonly grantor: Grant["grantor"];
  readonly scope: Grant["scope"];
  /** Left out: 30 minutes for a user's grant, until revoked for the others. */
  readonly lastsMs?: number;
  readonly by: string;
  readonly reason: string;
}

export function engineGrants(engine: TenantEngine): GrantStore {
  const isTaken = async (number: number) =>
    (await engine.get(GRANTS, grantId(number))) !== undefined;

  /** Grants are numbered without gaps and never removed, so the end can be found by halving. */
  async function firstFree(): Promise<number> {
    let taken = 0;
    let free = 1;
    while (await isTaken(free)) {
      taken = free;
      free *= 2;
    }
    while (free - taken > 1) {
      const middle = Math.floor((taken + free) / 2);
      if (await isTaken(middle)) taken = middle;
      else free = middle;
    }
    return free;
  }

  async function get(id: Grant["id"]): Promise<RecordedGrant> {
    checkName("grant id", id);
    return getRecord(engine, GRANTS, id);
  }

  return {
    get,
    async give(grant) {
      checkName("actor", grant.by);
      checkReason(grant.reason);
      if (grant.sessionId !== "") checkName("session id", grant.sessionId);
      const { lastsMs = grant.grantor === "user" ? USER_GRANT_MS : undefined } = grant;
      if (lastsMs !== undefined && !(Number.isSafeInteger(lastsMs) && lastsMs > 0)) {
        const hint = "Say in whole milliseconds how long it lasts, or leave it out.";
        throw new SallyportError("invalid_input", { what: "grant", hint });
      }
      const { policy, message } = grant.finding;
      const row = GRANTS.row({
        sessionId: grant.sessionId,
        revoked: false,
        grantor: grant.grantor,
        finding: { policy, message },
        scope: { ...grant.scope },
        by: grant.by,
        reason: grant.reason,
        expiresAt: lastsMs === undefined ? undefined : { nowPlusMs: lastsMs },
        createdAt: NOW,
        updatedAt: NOW,
      });
      const data = {
        policy: policy.toWellFormed(),
        message: message.toWellFormed(),
        grantor: grant.grantor,
        scope: { ...grant.scope },
        lasts_ms: lastsMs ?? null,
        reason: grant.reason.toWellFormed(),
      };
      const { sessionId: session, by: actor } = grant;
      for (let number = await firstFree(); ; number += 1) {
        const id = grantId(number);
        const event = { type: "grant.given", subject: id, session, actor, data };
        const given = await writeRecord(engine, GRANTS, insertStep(GRANTS, id, row), event);
        // If another process took this number at the same moment, the next one is tried.
        if (given !== undefined) return given;
      }
    },
    async revoke(id, reason, { actor }) {
      checkName("actor", actor);
      checkReason(reason);
      const { sessionId: session } = await get(id);
      const data = { reason: reason.toWellFormed() };
      const event = { type: "grant.revoked", subject: id, session, actor, data };
      const set = { state: "revoked", updated_at: NOW };
      const step = updateStep(GRANTS, id, { state: "live" }, set);
      const revoked = await writeRecord(engine, GRANTS, step, event);
      if (revoked !== undefined) return revoked;
      const hint = "It was revoked before.";
      throw new SallyportError("illegal_transition", { id, from: "revoked", to: "revoked", hint });
    },
    async listFor(sessionId) {
      const where = { session_id: { oneOf: ["", sessionId] } };
      return everyOne(engine, GRANTS, where, GRANTS.read);
    },
    async list({ after, limit }) {
      return (await engine.find(GRANTS, { where: {}, limit, afterOrd: after })).map(GRANTS.read);
    },
  };
}

/** Gate evaluations in the log: entries without a state change, like refusals. */
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
  /** Which call it was about, and what the agent argued against it. */
  readonly call?: JsonObject;
}

export function engineGateLedger(engine: TenantEngine): GateLedger {
  return {
    async record({ traceId, point, sessionId, actor, allowed, findings, overridden, call }) {
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
        ...(call === undefined ? {} : { call }),
      };
      const event = { type: "gate.evaluated", subject: traceId, session: sessionId, actor, data };
      const result = await engine.commit({ steps: [], events: [event] });
      if (!result.committed) throw new SallyportError("store_unavailable", { id: traceId });
    },
  };
}

/** Refused calls in the log: entries without a state change. */
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
