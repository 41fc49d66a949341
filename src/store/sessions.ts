import type { SessionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName, isName } from "../model/names.ts";
import { SESSIONS, type SessionRecord } from "../model/session.ts";
import { NOW } from "./engine.ts";
import type { TenantEngine } from "./tenant-engine.ts";

export interface SessionStore {
  /** Opened again by the same agent it is the same session, as it was. Throws already_exists when it is another agent's. */
  open(session: NewSession): Promise<SessionRecord>;
  /** Undefined when nobody opened it through here. */
  peek(id: SessionId): Promise<SessionRecord | undefined>;
  /** Oldest first. */
  list(query: SessionQuery): Promise<readonly SessionRecord[]>;
}

export type NewSession = Omit<SessionRecord, "createdAt" | "ord">;

export interface SessionQuery {
  readonly agent?: string;
  readonly after?: number;
  readonly limit: number;
}

export function engineSessions(engine: TenantEngine): SessionStore {
  async function peek(id: SessionId): Promise<SessionRecord | undefined> {
    const row = isName(id) ? await engine.get(SESSIONS, id) : undefined;
    return row === undefined ? undefined : SESSIONS.read(row);
  }
  return {
    peek,
    async open({ id, agent, owner, workingDirectory }) {
      checkName("session id", id);
      checkName("agent", agent);
      const row = SESSIONS.row({ agent, owner, workingDirectory, createdAt: NOW });
      const result = await engine.commit({
        steps: [{ op: "insert", table: SESSIONS, id, row }],
        events: [
          {
            type: "session.opened",
            subject: id,
            session: id,
            actor: agent,
            data: { owner },
          },
        ],
      });
      const there = result.committed ? result.rows[0] : result.current;
      if (there !== undefined && there["agent"] === agent) return SESSIONS.read(there);
      const hint = "Choose another id, or leave it out and one is made.";
      throw new SallyportError("already_exists", { id, hint });
    },
    async list({ agent, after, limit }) {
      const where = agent === undefined ? {} : { agent };
      const paging = after === undefined ? {} : { afterOrd: after };
      return (await engine.find(SESSIONS, { where, limit, ...paging })).map(SESSIONS.read);
    },
  };
}
