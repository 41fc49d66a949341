import type { SessionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import {
  GRANTS,
  type Grant,
  grantId,
  type RecordedGrant,
  USER_GRANT_MS,
} from "../model/finding.ts";
import { checkName } from "../model/names.ts";
import { checkReason } from "./decision-rows.ts";
import type { By } from "./decisions.ts";
import { NOW } from "./engine.ts";
import { everyOne } from "./readable.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** Permissions to override findings: each is a decision of a person, and stands in the trail with their name. */
export interface GrantStore {
  give(grant: NewGrant): Promise<RecordedGrant>;
  /** Throws not_found, and illegal_transition when it was revoked before. */
  revoke(id: Grant["id"], reason: string, by: By): Promise<RecordedGrant>;
  /** Throws not_found. */
  get(id: Grant["id"]): Promise<RecordedGrant>;
  /** Those of a session and those for all of them, also lapsed ones: whether they hold is judged where they are used. */
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
    const row = await engine.get(GRANTS, id);
    if (row === undefined) throw new SallyportError("not_found", { id });
    return GRANTS.read(row);
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
      for (let number = await firstFree(); ; number += 1) {
        const id = grantId(number);
        const result = await engine.commit({
          steps: [{ op: "insert", table: GRANTS, id, row }],
          events: [
            { type: "grant.given", subject: id, session: grant.sessionId, actor: grant.by, data },
          ],
        });
        // Somebody got this number at the same moment: the next one is ours, or theirs as well.
        if (result.committed) return GRANTS.read(result.rows[0] ?? {});
      }
    },
    async revoke(id, reason, { actor }) {
      checkName("actor", actor);
      checkReason(reason);
      const { sessionId } = await get(id);
      const result = await engine.commit({
        steps: [
          {
            op: "update",
            table: GRANTS,
            id,
            where: { state: "live" },
            set: { state: "revoked", updated_at: NOW },
          },
        ],
        events: [
          {
            type: "grant.revoked",
            subject: id,
            session: sessionId,
            actor,
            data: { reason: reason.toWellFormed() },
          },
        ],
      });
      if (result.committed) return GRANTS.read(result.rows[0] ?? {});
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
