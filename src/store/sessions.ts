import type { SessionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName, type Instant, isName } from "../model/names.ts";

import { encodeValue } from "../util/value-codec.ts";
import { NOW, type Row, type Table } from "./engine.ts";
import { decoded, instantIn } from "./readable.ts";
import type { TenantEngine } from "./tenant-engine.ts";

/** Whose session it is, written down when it is opened over HTTP and never changed. */
export const SESSIONS: Table = {
  name: "sessions",
  columns: { agent: "text", facts: "text", created_at: "int" },
  indexed: ["agent"],
};

export interface SessionStore {
  /** Opened again by the same agent it is the same session, as it was. Throws already_exists when it is another agent's. */
  open(session: NewSession): Promise<SessionRecord>;
  /** Undefined when nobody opened it through here. */
  peek(id: SessionId): Promise<SessionRecord | undefined>;
  /** Oldest first. */
  list(query: SessionQuery): Promise<readonly SessionRecord[]>;
}

export interface NewSession {
  readonly id: SessionId;
  readonly agent: string;
  /** On whose behalf the agent acts, empty for nobody. */
  readonly owner: string;
  readonly workingDirectory: string;
}

export interface SessionRecord extends NewSession {
  readonly createdAt: Instant;
  /** For paging. */
  readonly ord: number;
}

export interface SessionQuery {
  readonly agent?: string;
  readonly after?: number;
  readonly limit: number;
}

export function engineSessions(engine: TenantEngine): SessionStore {
  async function peek(id: SessionId): Promise<SessionRecord | undefined> {
    const row = isName(id) ? await engine.get(SESSIONS, id) : undefined;
    return row === undefined ? undefined : sessionOf(row);
  }
  return {
    peek,
    async open({ id, agent, owner, workingDirectory }) {
      checkName("session id", id);
      checkName("agent", agent);
      const facts = encodeValue({ owner, workingDirectory });
      const row = { agent, facts, created_at: NOW };
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
      if (there !== undefined && there["agent"] === agent) return sessionOf(there);
      const hint = "Choose another id, or leave it out and one is made.";
      throw new SallyportError("already_exists", { id, hint });
    },
    async list({ agent, after, limit }) {
      const where = agent === undefined ? {} : { agent };
      const paging = after === undefined ? {} : { afterOrd: after };
      return (await engine.find(SESSIONS, { where, limit, ...paging })).map(sessionOf);
    },
  };
}

function sessionOf(row: Row): SessionRecord {
  const { owner, workingDirectory } = decoded<Pick<NewSession, "owner" | "workingDirectory">>(
    row,
    "facts",
  );
  return {
    id: String(row["id"]),
    agent: String(row["agent"]),
    owner,
    workingDirectory,
    createdAt: instantIn(row, "created_at"),
    ord: Number(row["ord"]),
  };
}
