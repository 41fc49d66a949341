import type { DecisionId, SessionId } from "../model/decision.ts";
import type { AlsoChanged, Operation, OperationId } from "../model/operation.ts";
import type { DecisionMove } from "../store/decision-moves.ts";
import type { BroughtBack, Hold, Outcome, StartRefusal } from "../store/operations.ts";
import type { Progress, Tool, ToolResult } from "../tools/tool.ts";
import type { JsonValue } from "../util/json.ts";

/** One call that the gate allowed or a decision approved, ready to be carried out. */
export interface Order {
  readonly operationId: OperationId;
  readonly tool: Tool;
  /** The tool's definition when it was allowed. */
  readonly definitionHash: string;
  /** Parsed, and the very value whose canonical form was shown and hashed. */
  readonly input: JsonValue;
  readonly sessionId: SessionId;
  readonly messageId: string;
  readonly callId: string;
  readonly turn: number;
  readonly step: number;
  readonly workingDirectory: string;
  /** Where the gate found what the call touches; see `ToolContext.places`. */
  readonly places: readonly string[];
  /** The decision it uses up and the hash that was approved. */
  readonly approval?: { readonly decisionId: DecisionId; readonly hash: string };
  /** Versions of the target under which it may run; looked at once more after the intent, right before the tool is called. */
  readonly expectedVersions?: readonly string[];
  /**
   * Looks at other targets that the call may change, right before it, and gives what is to be asked right after: which
   * earlier operations it has changed the targets of. Not knowing it is no reason to fail.
   */
  readonly watch?: () => Promise<WatchedCall>;
  /** The operation that it takes back. */
  readonly undoOf?: OperationId;
  /** Asked after it took something back: what else is now as it was. Not knowing it is no reason to fail. */
  readonly broughtBack?: () => Promise<readonly BroughtBack[]>;
  /** The move of the decision that this outcome brings about; it is written in the same transaction. */
  readonly closes?: (outcome: Outcome) => DecisionMove | undefined;
  /** Who asked for it, from the agent upwards: none of them may answer the question when its outcome is lost. */
  readonly chain?: readonly string[];
  /** What else must hold in the transaction that writes the intent. */
  readonly holds?: readonly Hold[];
  /** What allowed it without a person, for the trail: a standing rule. */
  readonly allowedBy?: string;
  readonly actor: string;
  readonly signal?: AbortSignal;
  readonly progress?: (report: Progress) => void;
}

/** Asked right after the call: which targets of earlier operations are not as they were right before it. */
export type WatchedCall = () => Promise<readonly AlsoChanged[]>;

/** What came of an order. Nothing here is thrown but failures of the store. */
export type Executed =
  | { readonly status: "done"; readonly operation: Operation; readonly result: ToolResult }
  | { readonly status: "failed"; readonly operation: Operation; readonly result: ToolResult }
  | { readonly status: "unknown"; readonly operation: Operation }
  /** Nothing was done. `used_up` comes with the operation that did it. */
  | {
      readonly status: "refused";
      readonly reason: StartRefusal | "definition_changed";
      readonly operation?: Operation;
    }
  /** Somebody else took it over while we worked; this is what they have made of it so far. */
  | { readonly status: "overtaken"; readonly operation: Operation };
