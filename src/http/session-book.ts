import { decodeProposal, requestedBy } from "../gate/action.ts";
import type { Session } from "../gate/session.ts";
import type { Decision } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { isName } from "../model/names.ts";
import type { Operation } from "../model/operation.ts";
import type { SessionRecord } from "../model/session.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { Call } from "./route.ts";
import { idCursor } from "./wire/common.ts";

/** The owner of a session never changes, so it is cached. */
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

/** True if the caller may see this session's records. */
export async function maySee(call: Call, sessionId: string): Promise<boolean> {
  if (call.own === undefined) return true;
  return (await call.services.sessions.peek(call, sessionId))?.agent === call.own;
}

/** The same answer for another owner's, another tenant's and a missing session, so that nothing is revealed. */
export function notFound(id: string): SallyportError {
  const hint = "Check the id; records of others are reported as missing too.";
  return new SallyportError("not_found", { id, hint });
}

/** The session that a list is filtered by. Callers limited to their own sessions must name one. */
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
 * The session as the gate has it. Operators also reach sessions opened inside the program. Its folder must still
 * be one that the operator lists; a rollback has the folders of the calls that it undoes. Throws not_allowed.
 */
export async function openSession(
  call: Call,
  id: string,
  use: "work" | "rollback" = "work",
): Promise<Session> {
  const record = await call.services.sessions.peek(call, id);
  const { agent = "unknown", owner = "", workingDirectory: asked = "" } = record ?? {};
  const workingDirectory = use === "rollback" ? "" : await call.gate.sessions.folderFor(asked);
  return call.gate.sessions.open({ id, agent, owner, workingDirectory });
}

/** A session as lists show it. */
type KnownSession = Omit<SessionRecord, "ord">;

/** How many decisions one page scans. A page may be short although there are more. */
const LOOKED_AT = 500;

/** Cursor of the second part of the list: no decision has this id. */
export const SECOND_PART = "0";

/**
 * Sessions that a program opened directly are not stored; they are found by their decisions, each by its
 * first decision since then.
 */
export async function askingSessions(
  call: Call,
  {
    after,
    since,
    limit,
  }: { readonly after: string; readonly since?: string; readonly limit: number },
): Promise<{ items: readonly KnownSession[]; next: string | null }> {
  const { gate, services } = call;
  const window = definedFields({ since });
  const decisions = await gate.decisions.list({
    ...window,
    ...(after === SECOND_PART ? {} : { after }),
    limit: LOOKED_AT,
  });
  const items: KnownSession[] = [];
  const seen = new Set<string>();
  for (const decision of decisions) {
    const { id, sessionId } = decision;
    if (seen.has(sessionId)) continue;
    seen.add(sessionId);
    if ((await services.sessions.peek(call, sessionId)) !== undefined) continue;
    const [first] = await gate.decisions.list({ ...window, sessionId, limit: 1 });
    if (first?.id !== id) continue;
    items.push(sessionOfDecision(decision));
    if (items.length >= limit) return { items, next: idCursor(id) };
  }
  const last = decisions.at(-1);
  const hasMore = decisions.length === LOOKED_AT && last !== undefined;
  return { items, next: hasMore ? idCursor(last.id) : null };
}

/** One session, from what is stored of it; undefined if nothing is. */
export async function findSession(call: Call, id: string): Promise<KnownSession | undefined> {
  if (!isName(id)) return undefined;
  const opened = await call.services.sessions.peek(call, id);
  if (opened !== undefined || call.own !== undefined) return opened;
  const [decision] = await call.gate.decisions.list({ sessionId: id, limit: 1 });
  if (decision !== undefined) return sessionOfDecision(decision);
  const { operations } = await call.gate.operations.listNewest(id, { limit: 1 });
  const [operation] = operations;
  return operation === undefined ? undefined : sessionOfOperation(operation);
}

function sessionOfDecision(decision: Decision): KnownSession {
  const { sessionId: id, createdAt } = decision;
  const { chain, owner } = requestedBy(decision);
  const agent = chain[0] ?? "unknown";
  return { id, agent, owner, workingDirectory: folderOf(decision), createdAt };
}

function folderOf(decision: Decision): string {
  try {
    return decodeProposal(decision).calls[0]?.workingDirectory ?? "";
  } catch {
    // Staged by another platform: it has no folder.
    return "";
  }
}

function sessionOfOperation({
  sessionId,
  chain,
  workingDirectory,
  createdAt,
}: Operation): KnownSession {
  return { id: sessionId, agent: chain[0] ?? "unknown", owner: "", workingDirectory, createdAt };
}
