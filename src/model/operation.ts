import type { JsonValue } from "../util/json.ts";
import type { DecisionId, SessionId } from "./decision.ts";
import { data, flag, instant, integer, key, oneOf, prose, text } from "./field.ts";
import { type RecordOf, record } from "./record.ts";

/**
 * The life of one execution. `started` is the intent, on disk before anything happens; `unknown` is an outcome that was
 * lost and that a probe or a person has to find out.
 */
export const OPERATION_MOVES = {
  started: ["success", "failed", "unknown"],
  /** Back to started only when a person says that it did not happen and should be tried once more. */
  unknown: ["success", "failed", "started"],
  success: ["rolled_back"],
  /** Only with an undo record: a review blocked it after its effect, or a part of it was done. */
  failed: ["rolled_back"],
  rolled_back: [],
} as const satisfies Record<string, readonly string[]>;

export type OperationStatus = keyof typeof OPERATION_MOVES;
export type OperationId = string;

export const OPERATION_STATUSES = Object.keys(OPERATION_MOVES) as readonly OperationStatus[];

/** What has happened is recorded, whatever its size. */
const ANY_SIZE = { limit: "none" } as const;

/** How to take one call back, as it was recorded right after the call. */
export interface RecordedUndo {
  readonly tool: string;
  readonly input: JsonValue;
  readonly description: string;
  readonly irreversible: boolean;
  readonly manualGuide: string;
  /** Version of the target before the call. Absent when nobody could look. */
  readonly versionBefore?: string;
  /** Earlier operations of the session whose targets this call changed as well. */
  readonly alsoChanged?: readonly AlsoChanged[];
}

/** Two calls that share a record: `id` is the earlier one, `version` is how the later one left the earlier one's target. */
export interface AlsoChanged {
  readonly id: OperationId;
  readonly version: string;
}

/** One execution of a tool: what was meant, how often it was tried, what came of it, and how to take it back. */
export const OPERATIONS = record(
  "operations",
  {
    id: key<OperationId>(),
    sessionId: text<SessionId>(),
    /** The message of the conversation that asked for it; rollback works per message. */
    messageId: text(),
    callId: text(),
    turn: integer(),
    tool: text(),
    /** What the tool says it does: `read` leaves nothing to take back. */
    effect: text(),
    /** The tool's definition when it was allowed; another one must not run in its place. */
    definitionHash: text(),
    /** Canonical JSON: the bytes that were shown, hashed and sent. */
    input: text(),
    /** Where relative paths in the input start. */
    workingDirectory: prose(ANY_SIZE),
    /** Who asked for it, from the agent upwards: none of them may say what became of it. */
    chain: data<readonly string[]>(ANY_SIZE),
    /** The decision that allowed it, empty when the gate did so by itself. */
    decisionId: text<DecisionId | "">(),
    /** Its place in the decision's bundle, from 0. */
    step: integer(),
    /** The operation that this one takes back, empty otherwise. */
    undoOf: text<OperationId | "">(),
    status: oneOf(OPERATION_STATUSES),
    attempt: integer(),
    /** Only grows; whoever settles must hold the current one. */
    fence: integer(),
    leaseUntil: instant(),
    output: prose(ANY_SIZE).optional(""),
    /** Set exactly when `output` is a summary and the whole was stored under `storedPath`. */
    truncated: flag(),
    storedPath: prose(ANY_SIZE).optional(""),
    undo: data<RecordedUndo>(ANY_SIZE).optional(),
    /** Why it failed, or why its outcome is unknown. */
    error: prose(ANY_SIZE).optional(""),
    /** Version of the target after it ran, to see later whether somebody changed it since. */
    stateVersion: prose(ANY_SIZE).optional(""),
    createdAt: instant(),
    updatedAt: instant(),
  },
  {
    indexes: [
      { name: "by_session", on: ["session_id", "ord"] },
      { name: "by_status", on: ["status", "ord"] },
    ],
  },
);
export type Operation = RecordOf<typeof OPERATIONS>;
