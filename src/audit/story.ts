import type { AuditEntry } from "../model/audit-entry.ts";
import type { AuditReader } from "../store/store.ts";
import type { JsonObject } from "../util/json.ts";

/** The subject of a line of a story, by the noun of its event. */
const CHAPTERS = {
  session: "session",
  run: "plan",
  delegation: "plan",
  task: "task",
  gate: "gate",
  call: "gate",
  grant: "gate",
  decision: "decision",
  interaction: "interaction",
  operation: "operation",
} as const;
type Chapter = (typeof CHAPTERS)[keyof typeof CHAPTERS] | "other";

export interface StoryLine {
  readonly seq: number;
  readonly at: string;
  readonly chapter: Chapter;
  /** The event: `task.claimed`. */
  readonly type: string;
  readonly subject: string;
  readonly session: string;
  readonly actor: string;
  /** Null when it was erased. */
  readonly data: JsonObject | null;
}

const PAGE = 1_000;

/**
 * Everything that happened in a session, oldest first: its tasks, plan, gate trace, decisions, questions to people and
 * operations, and those of its sub-agents, whose sessions are named by its delegations. A task belongs to it with its
 * whole life once it was linked to it, so the chain is read twice: first to learn what belongs to the session, then to
 * produce the story. Shape: pulled; it holds a page at a time.
 */
export async function* sessionStory(
  reader: AuditReader,
  sessionId: string,
): AsyncGenerator<StoryLine> {
  const sessions = new Set([sessionId]);
  const tasks = new Set<string>();
  for await (const { type, subject, session } of entriesOf(reader)) {
    if (!sessions.has(session)) continue;
    if (type === "delegation.started") sessions.add(subject);
    if (nounOf(type) === "task") tasks.add(subject);
  }
  for await (const entry of entriesOf(reader)) {
    const isTask = nounOf(entry.type) === "task" && tasks.has(entry.subject);
    if (isTask || sessions.has(entry.session)) yield lineOf(entry);
  }
}

async function* entriesOf(reader: AuditReader): AsyncGenerator<AuditEntry> {
  for (let after = 0; ; ) {
    const page = await reader.read({ after, limit: PAGE });
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.seq;
  }
}

function lineOf({ seq, at, type, subject, session, actor, data }: AuditEntry): StoryLine {
  const noun = nounOf(type);
  const chapter = Object.hasOwn(CHAPTERS, noun) ? CHAPTERS[noun as keyof typeof CHAPTERS] : "other";
  const facts = data === null ? null : (JSON.parse(data) as JsonObject);
  return { seq, at, chapter, type, subject, session, actor, data: facts };
}

function nounOf(type: string): string {
  return type.split(".", 1)[0] ?? "";
}
