import { instant, key, oneOf, prose, type RecordOf, record, text } from "./record.ts";

/** What a pause covers. Everything of a tenant is the kill switch; these are parts of it. */
export const PAUSE_KINDS = ["agent", "tool", "session"] as const;

export type PauseId = string;

/** A part of a tenant that starts no effects until a person resumes it. A pause that is over has no row: the log has it. */
export const PAUSES = record("pauses", {
  id: key<PauseId>(),
  kind: oneOf(PAUSE_KINDS),
  /** The agent, the session, or a pattern of tool names such as `orders.*`. */
  subject: text(),
  reason: prose(),
  /** Who paused it. */
  actor: text(),
  createdAt: instant(),
});

export type PausedPart = RecordOf<typeof PAUSES>;
export type PauseScope = Pick<PausedPart, "kind" | "subject">;

/** One pause per scope. */
export function pauseId({ kind, subject }: PauseScope): PauseId {
  return `${kind}:${subject}`;
}

/** What starts an effect, as far as a pause cares. */
export interface Acting {
  /** The agent, then everyone for whom it acts: a pause also holds for what was handed down. */
  readonly agents: readonly string[];
  readonly tool: string;
  readonly sessionId: string;
}

/** Whether a pause covers it. In a pattern of tools `*` stands for any characters. */
export function isPaused({ kind, subject }: PauseScope, acting: Acting): boolean {
  if (kind === "agent") return acting.agents.includes(subject);
  if (kind === "session") return subject === acting.sessionId;
  return matches(subject, acting.tool);
}

function matches(pattern: string, name: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return pattern === name;
  if (!name.startsWith(first)) return false;
  const last = rest.pop() ?? "";
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return name.length >= at + last.length && name.endsWith(last);
}
