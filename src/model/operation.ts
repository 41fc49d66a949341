import type { JsonValue } from "../util/json.ts";
import type { DecisionId, SessionId } from "./decision.ts";
import type { Instant } from "./names.ts";

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

export function isOperationStatus(name: unknown): name is OperationStatus {
  return typeof name === "string" && Object.hasOwn(OPERATION_MOVES, name);
}

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
export interface Operation {
  readonly id: OperationId;
  readonly sessionId: SessionId;
  /** The message of the conversation that asked for it; rollback works per message. */
  readonly messageId: string;
  readonly callId: string;
  readonly turn: number;
  readonly tool: string;
  /** What the tool says it does: `read` leaves nothing to take back. */
  readonly effect: string;
  /** The tool's definition when it was allowed; another one must not run in its place. */
  readonly definitionHash: string;
  /** Canonical JSON: the bytes that were shown, hashed and sent. */
  readonly input: string;
  /** Where relative paths in the input start. */
  readonly workingDirectory: string;
  /** Who asked for it, from the agent upwards: none of them may say what became of it. Empty when it was not kept. */
  readonly chain: readonly string[];
  /** The decision that allowed it, empty when the gate did so by itself. */
  readonly decisionId: DecisionId | "";
  /** Its place in the decision's bundle, from 0. */
  readonly step: number;
  /** The operation that this one takes back, empty otherwise. */
  readonly undoOf: OperationId | "";
  readonly status: OperationStatus;
  readonly attempt: number;
  /** Only grows; whoever settles must hold the current one. */
  readonly fence: number;
  readonly leaseUntil: Instant;
  readonly output: string;
  /** Set exactly when `output` is a summary and the whole was stored under `storedPath`. */
  readonly truncated: boolean;
  readonly storedPath: string;
  readonly undo: RecordedUndo | undefined;
  /** Why it failed, or why its outcome is unknown. */
  readonly error: string;
  /** Version of the target after it ran, to see later whether somebody changed it since. */
  readonly stateVersion: string;
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
}
