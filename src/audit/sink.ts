import type { SessionId } from "../model/decision.ts";
import type { Instant } from "../model/instant.ts";

/** What became of a call: the words of its answer, and `undone` when a success was taken back later. */
export const AUDIT_OUTCOMES = ["done", "denied", "failed", "unknown", "undone"] as const;
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

/**
 * What a host's sink learns of one call. It is a copy for the host's own log, not a line of the trail. The names are our
 * own, and docs/reference/audit-entries.md lists them (compared by a test).
 */
export interface ToolAuditEntry {
  /** What kind of deed: the tool's declared audit operation, else a guess from its name, else `invoke`. */
  readonly operation: string;
  /** The tool's registered name, or the name that was asked for when there is no such tool. */
  readonly tool: string;
  readonly sessionId: SessionId;
  /** The agent's own id for the call. */
  readonly callId: string;
  /** When it was stored; of a refusal, when it was refused. */
  readonly at: Instant;
  readonly outcome: AuditOutcome;
  /** The turn of the conversation, 0 when it is not known. */
  readonly turn: number;
  /** Where the whole output lies. Only in entries for trusted sinks, and only when the output was stored. */
  readonly storedPath?: string;
}

/**
 * A place of the host's for audit entries. Shape: callback; the engine calls it synchronously, after the outcome is
 * stored and before the caller gets its answer.
 *
 * The rule: a sink hears and has no say. What it throws is told to `onProblem`; the outcome stays as it is, and the other
 * sinks get the entry all the same. Nothing is sent twice, so whoever needs every entry reads the trail, which is
 * complete. A promise is not waited for, and its rejection counts as a throw. The engine stands still while `write` runs:
 * put the entry into a queue when the place is slow.
 */
export interface AuditSink {
  /** Names it in problems. */
  readonly name: string;
  /**
   * True when nobody but the caller's own people can read the place. Only then does it get the stored path, which is
   * caller-specific and untrusted. Read once, when the observer is made.
   */
  readonly trusted?: boolean;
  /** The entry is frozen. */
  write(entry: ToolAuditEntry): void;
}
