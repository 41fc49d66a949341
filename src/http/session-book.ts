import { SallyportError } from "../model/errors.ts";
import type { Session } from "../port/session.ts";
import type { SessionRecord } from "../store/sessions.ts";
import type { Call } from "./route.ts";

/** Whose session it is never changes, so what was read once stays true. */
export interface SessionBook {
  peek(call: Pick<Call, "store">, id: string): Promise<SessionRecord | undefined>;
}

const MOST_REMEMBERED = 10_000;

export function createSessionBook(): SessionBook {
  const known = new Map<string, SessionRecord>();
  return {
    async peek({ store }, id) {
      const key = JSON.stringify([store.tenant, id]);
      const before = known.get(key);
      if (before !== undefined) return before;
      const record = await store.sessions.peek(id);
      if (record === undefined) return undefined;
      if (known.size >= MOST_REMEMBERED) known.clear();
      known.set(key, record);
      return record;
    },
  };
}

/** True when the one who asks may see this session's records. */
export async function maySee(call: Call, sessionId: string): Promise<boolean> {
  if (call.own === undefined) return true;
  return (await call.services.sessions.peek(call, sessionId))?.agent === call.own;
}

/** The same words whether it is somebody else's, another tenant's or nobody's: the difference is nobody's business. */
export function notFound(id: string): SallyportError {
  const hint = "Check the id; records of others are as unknown as records that never were.";
  return new SallyportError("not_found", { id, hint });
}

/** The session that a list is narrowed to. Whoever may only see their own has to name one of theirs. */
export async function narrowed(
  call: Call,
  sessionId: string | undefined,
): Promise<string | undefined> {
  if (call.own === undefined) return sessionId;
  if (sessionId === undefined) {
    const hint = "Name one of your sessions with `sessionId`.";
    throw new SallyportError("invalid_input", { what: "sessionId", hint });
  }
  if (!(await maySee(call, sessionId))) throw notFound(sessionId);
  return sessionId;
}

/**
 * The session as the port has it. One that was opened inside the program is there for operators too. Its folder must still
 * be one that the operator lists; a rollback has the folders of the calls that it undoes. Throws not_allowed.
 */
export async function openSession(
  call: Call,
  id: string,
  use: "work" | "rollback" = "work",
): Promise<Session> {
  const record = await call.services.sessions.peek(call, id);
  const { agent = "unknown", owner = "", workingDirectory: asked = "" } = record ?? {};
  const workingDirectory = use === "rollback" ? "" : await call.port.sessions.folderFor(asked);
  return call.port.sessions.open({ id, agent, owner, workingDirectory });
}
