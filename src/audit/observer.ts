import type { CallRequest } from "../model/call.ts";
import type { SessionId } from "../model/decision.ts";
import type { Operation, OperationStatus } from "../model/operation.ts";
import type { OperationStore } from "../store/operations.ts";
import { auditOperationOf, guessOperation } from "../tools/audit-operation.ts";
import type { Tool } from "../tools/tool.ts";
import { type Clock, systemClock, toIso } from "../util/clock.ts";
import { oneLine } from "../util/error-text.ts";
import { observedOperations } from "./observer-operations.ts";
import { type ObserverProblemListener, problemTeller } from "./observer-problem.ts";
import type { AuditOutcome, AuditSink, ToolAuditEntry } from "./sink.ts";
import { sinkDelivery } from "./sink-delivery.ts";

export interface AuditObserverOptions {
  /** Called in this order. */
  readonly sinks: readonly AuditSink[];
  /** By name or alias, as a registry's `get`: the entry's operation comes from this tool's metadata. */
  readonly findTool: (name: string) => Pick<Tool, "name" | "metadata"> | undefined;
  /** No default: a log that loses entries in silence looks complete when it is not. */
  readonly onProblem: ObserverProblemListener;
  readonly clock?: Clock;
}

/** A call that was not carried out. Denied: somebody or something said no. Failed: no such tool, or no such input. */
export interface RefusedCall extends Pick<CallRequest, "callId" | "tool" | "turn"> {
  readonly sessionId: SessionId;
  readonly outcome: "denied" | "failed";
}

/** Turns what happens to calls into entries for the host's sinks. Nothing here throws, and nothing waits. */
export interface AuditObserver {
  /** Whoever said no: permission, checkpoint, confidence, gate, review or kill switch. Refusals are entries too. */
  refused(call: RefusedCall): void;
  /** An operation as it was stored just now. One that has no outcome yet is not told. */
  settled(operation: Operation): void;
  /** The same store, with every outcome, taking back and refused start told. Give it to whoever carries out. */
  around(operations: OperationStore): OperationStore;
}

/** Throws TypeError for a sink that cannot be called. */
export function createAuditObserver(options: AuditObserverOptions): AuditObserver {
  const { findTool, clock = systemClock } = options;
  const tell = problemTeller(options.onProblem);
  const deliver = sinkDelivery(options.sinks, tell);

  /** Name and operation. Metadata is third-party code: a getter that throws must not cost the entry. */
  function deedOf(name: string): Pick<ToolAuditEntry, "operation" | "tool"> {
    try {
      const tool = findTool(name);
      return { operation: auditOperationOf(tool ?? { name }), tool: tool?.name ?? oneLine(name) };
    } catch (cause) {
      tell({ code: "tool_unreadable", subject: oneLine(name), cause });
      return { operation: guessOperation(name), tool: oneLine(name) };
    }
  }

  function write(fact: Fact): void {
    try {
      const { sessionId, callId, at, outcome, turn, storedPath } = fact;
      deliver({
        ...deedOf(fact.tool),
        sessionId,
        // The model wrote it: it must not forge lines in a sink that prints.
        callId: oneLine(callId),
        at,
        outcome,
        turn,
        ...(storedPath === "" ? {} : { storedPath }),
      });
    } catch (cause) {
      tell({ code: "entry_failed", cause });
    }
  }

  const observer: AuditObserver = {
    refused: ({ tool, sessionId, callId, turn = 0, outcome }) =>
      write({ tool, sessionId, callId, turn, outcome, at: toIso(clock.now()), storedPath: "" }),
    settled(operation) {
      const outcome = OUTCOMES[operation.status];
      if (outcome !== undefined) write({ ...operation, outcome, at: operation.updatedAt });
    },
    around: (operations) =>
      options.sinks.length === 0 ? operations : observedOperations(operations, observer, tell),
  };
  return observer;
}

type Fact = Omit<ToolAuditEntry, "operation" | "storedPath"> & { readonly storedPath: string };

const OUTCOMES: Readonly<Record<OperationStatus, AuditOutcome | undefined>> = {
  started: undefined,
  success: "done",
  failed: "failed",
  unknown: "unknown",
  rolled_back: "undone",
};
