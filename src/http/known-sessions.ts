import type { Decision } from "../model/decision.ts";
import { isName } from "../model/names.ts";
import type { Operation } from "../model/operation.ts";
import { chainOf, decodeAction, ownerOf } from "../port/action.ts";
import type { SessionRecord } from "../store/sessions.ts";
import type { Call } from "./route.ts";
import { idCursor } from "./wire/common.ts";

/** A session as a list shows it, whoever opened it. */
type KnownSession = Omit<SessionRecord, "ord">;

/** How many decisions one page looks through. A page may be short although there is more. */
const LOOKED_AT = 500;

/** Where the second part of the list begins: no decision has this name. */
export const SECOND_PART = "0";

/**
 * Sessions that a program opened inside itself are written down nowhere; they are known by what they asked for, each by its
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
  const { port, services } = call;
  const window = since === undefined ? {} : { since };
  const decisions = await port.decisions.list({
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
    const [first] = await port.decisions.list({ ...window, sessionId, limit: 1 });
    if (first?.id !== id) continue;
    items.push(sessionOfDecision(decision));
    if (items.length >= limit) return { items, next: idCursor(id) };
  }
  const last = decisions.at(-1);
  const hasMore = decisions.length === LOOKED_AT && last !== undefined;
  return { items, next: hasMore ? idCursor(last.id) : null };
}

/** One session, by whatever there is of it; undefined when nobody has heard of it. */
export async function findSession(call: Call, id: string): Promise<KnownSession | undefined> {
  if (!isName(id)) return undefined;
  const opened = await call.services.sessions.peek(call, id);
  if (opened !== undefined || call.own !== undefined) return opened;
  const [decision] = await call.port.decisions.list({ sessionId: id, limit: 1 });
  if (decision !== undefined) return sessionOfDecision(decision);
  const { operations } = await call.port.operations.listNewest(id, { limit: 1 });
  const [operation] = operations;
  return operation === undefined ? undefined : sessionOfOperation(operation);
}

function sessionOfDecision(decision: Decision): KnownSession {
  const { sessionId: id, createdAt } = decision;
  const agent = chainOf(decision)[0] ?? "unknown";
  const owner = ownerOf(decision);
  return { id, agent, owner, workingDirectory: folderOf(decision), createdAt };
}

function folderOf(decision: Decision): string {
  try {
    return decodeAction(decision)[0]?.workingDirectory ?? "";
  } catch {
    // Staged from outside: it has no folder of ours.
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
