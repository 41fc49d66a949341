import type { JsonObject, JsonValue } from "../util/json.ts";
import type { DecisionId, SessionId } from "./decision.ts";
import type { Finding } from "./finding.ts";
import type { InteractionId } from "./interaction.ts";
import {
  bytes,
  data,
  flag,
  instant,
  integer,
  key,
  oneOf,
  prose,
  type RecordOf,
  record,
  text,
} from "./record.ts";

/** One tool invocation as an agent asks for it. */
export interface NewCall {
  /** The agent's own id for this call; answers carry it. Left out: its key, or else a new id. */
  readonly callId?: string;
  /** Name or alias. */
  readonly tool: string;
  /** JSON text as the model wrote it, or a value. */
  readonly input: string | JsonValue;
  /** The message that asked for it; rollback works per message. */
  readonly messageId?: string;
  readonly turn?: number;
  /** With a key the call is made once in its session: asked for again, also by a restarted process, it answers what became of it. */
  readonly key?: string;
  /**
   * Names this request, not the call: sent again with it, the request answers what became of it. Unlike `key` it does not
   * set the call apart from an identical earlier one that was not executed yet.
   */
  readonly requestKey?: string;
  /** Facts for guards and validators, stored with the decision; see `OpenSession.metadata`. */
  readonly metadata?: JsonObject;
}

/** What people changed in a call after the agent asked for it. */
export interface EditedCall {
  readonly by: readonly string[];
  /** The input that the agent asked for. */
  readonly original: JsonValue;
  /** The input that people decided on, and the only one that is executed. */
  readonly input: JsonValue;
  /** What differs, like `cents` or `items.0.price`. */
  readonly fields: readonly string[];
}

/** The same with its id, which everything that is recorded of it carries. */
export interface CallRequest extends NewCall {
  readonly callId: string;
}

/**
 * What became of a call, always as a value. `text` is written for the model: what happened or was refused, why, and what to
 * do instead. `pending` says plainly that nothing was executed yet.
 */
export type CallAnswer = Answered & {
  /** Set when people changed the call. */
  readonly edited?: EditedCall;
};

type Answered =
  | {
      readonly answer: "done";
      readonly text: string;
      /** Empty when a person answered a question: nothing was executed for it. */
      readonly operationId: OperationId | "";
      /** Handed through as the tool gave it: not copied, not serialised. */
      readonly data?: unknown;
      readonly undo?: RecordedUndo;
      /** Set exactly when `text` is a summary and the whole was stored under `storedPath`. */
      readonly truncated: boolean;
      readonly storedPath: string;
      /** Set for a tool that can be neither tried nor undone. */
      readonly warnings?: readonly string[];
    }
  | {
      readonly answer: "pending";
      readonly text: string;
      /** Empty for a question of the agent's own. */
      readonly decisionId: DecisionId | "";
      /** What waits in the inbox. */
      readonly interactionId: InteractionId;
    }
  | { readonly answer: "denied"; readonly text: string; readonly findings: readonly Finding[] }
  | {
      readonly answer: "failed";
      readonly text: string;
      readonly operationId?: OperationId;
      readonly data?: unknown;
      /** As of an answer that is done; left out when the text is whole. */
      readonly truncated?: true;
      readonly storedPath?: string;
    }
  | {
      readonly answer: "unknown";
      readonly text: string;
      readonly operationId: OperationId;
      /** The question to people about it; left out while it may still turn out without them. */
      readonly interactionId?: InteractionId;
    };

/**
 * The life of one execution. `started` is the intent, on disk before anything happens; `unknown` is an outcome that was
 * lost and that a probe or a person has to find out.
 */
export const OPERATION_MOVES = {
  started: ["success", "failed", "unknown", "returned"],
  /** Back to started only when a person says that it did not happen and should be tried once more. */
  unknown: ["success", "failed", "started", "returned"],
  /** A permit that was not used: its executor gave it back, or a person found that nothing happened. It may be taken again. */
  returned: ["started"],
  success: ["rolled_back"],
  /** Only with an undo record: a review blocked it after its effect, or a part of it was done. */
  failed: ["rolled_back"],
  rolled_back: [],
} as const satisfies Record<string, readonly string[]>;

export type OperationStatus = keyof typeof OPERATION_MOVES;
export type OperationId = string;

const OPERATION_STATUSES = Object.keys(OPERATION_MOVES) as readonly OperationStatus[];

/** What has happened is recorded, whatever its size. */
const ANY_SIZE = { limit: "none" } as const;

/** How to take one call back, as it was recorded right after the call. */
export interface RecordedUndo {
  readonly tool: string;
  readonly input: JsonValue;
  readonly description: string;
  readonly irreversible: boolean;
  readonly manualGuide: string;
  /** Version of the target before the call. Absent when it could not be read. */
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
    /** What the tool declares: `read` leaves nothing to undo. */
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
    /** The operation that this one undoes, empty otherwise. */
    undoOf: text<OperationId | "">(),
    /** Who holds the permit, for an operation that an external executor carries out; empty for one that runs here. */
    executor: text(),
    status: oneOf(OPERATION_STATUSES),
    attempt: integer(),
    /** Only grows; settling requires the current one. */
    fence: integer(),
    leaseUntil: instant(),
    output: prose(ANY_SIZE).optional(""),
    /** Set exactly when `output` is a summary and the whole was stored under `storedPath`. */
    truncated: flag(),
    storedPath: prose(ANY_SIZE).optional(""),
    undo: data<RecordedUndo>(ANY_SIZE).optional(),
    /** Why it failed, or why its outcome is unknown. */
    error: prose(ANY_SIZE).optional(""),
    /** Version of the target after it ran, to detect later changes. */
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

/**
 * The picture that the tool of an approved call returned, under the id of its operation: the agent fetches the result later, and
 * its model gets what it would have got at once.
 */
export const PICTURES = record("pictures", {
  id: key<OperationId>(),
  mediaType: text(),
  bytes: bytes(),
  createdAt: instant(),
});
