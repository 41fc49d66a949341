import type { SessionId } from "../model/decision.ts";
import type { Instant } from "../model/names.ts";
import type { CallRequest, Operation, OperationStatus } from "../model/operation.ts";
import type { OperationStore } from "../store/operations.ts";
import type { Tool } from "../tools/tool.ts";
import { auditOperationOf, guessOperation } from "../tools/tool.ts";
import { type Clock, systemClock, toIso } from "../util/clock.ts";
import { oneLine } from "../util/error-text.ts";

export interface AuditObserverOptions {
  /** Called in this order. */
  readonly sinks: readonly AuditSink[];
  /** By name or alias, as a registry's `get`: the entry's operation comes from this tool's metadata. */
  readonly findTool: (name: string) => Pick<Tool, "name" | "metadata"> | undefined;
  /** No default: a log that loses entries silently looks complete. */
  readonly onProblem: ObserverProblemListener;
  readonly clock?: Clock;
}

/** A call that was not executed. Denied: a check or a person refused. Failed: unknown tool or invalid input. */
interface RefusedCall extends Pick<CallRequest, "callId" | "tool" | "turn"> {
  readonly sessionId: SessionId;
  readonly outcome: "denied" | "failed";
}

/** Turns call events into entries for the host's sinks. Nothing here throws or waits. */
export interface AuditObserver {
  /** A refusal by permission, checkpoint, confidence, gate, review or kill switch. Refusals are entries too. */
  refused(call: RefusedCall): void;
  /** An operation that was just stored. Without an outcome it is not reported. */
  settled(operation: Operation): void;
  /** The same store, reporting every outcome, undo and refused start. Pass it to the executor. */
  around(operations: OperationStore): OperationStore;
}

/** Throws TypeError for a sink that cannot be called. */
export function createAuditObserver(options: AuditObserverOptions): AuditObserver {
  const { findTool, clock = systemClock } = options;
  const tell = problemTeller(options.onProblem);
  const deliver = sinkDelivery(options.sinks, tell);

  /** Name and operation. Metadata is third-party code: a getter that throws must not lose the entry. */
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
        // Written by the model: it must not forge lines in a sink that prints.
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
  returned: undefined,
};

/**
 * Reports everything that is settled or refused to the observer. It wraps the store because every execution path
 * (direct, approved, resumed, undone) ends there, so none can omit it. Answers and errors are the store's own.
 */
function observedOperations(
  operations: OperationStore,
  observer: Pick<AuditObserver, "refused" | "settled">,
  tell: TellProblem,
): OperationStore {
  /** An undone operation differs from the settled one, so it is read. */
  async function tellUndone(id: string): Promise<void> {
    try {
      observer.settled(await operations.get(id));
    } catch (cause) {
      tell({ code: "undone_unread", subject: id, cause });
    }
  }

  return {
    async start(intent) {
      const answer = await operations.start(intent);
      // Consumed means that another start has it, whose outcome is reported separately.
      if (!answer.started && answer.reason !== "used_up") {
        observer.refused({ ...intent, outcome: "denied" });
      }
      return answer;
    },
    async settle(id, settlement) {
      const answer = await operations.settle(id, settlement);
      if (!answer.settled) return answer;
      observer.settled(answer.operation);
      if (settlement.tookBack !== undefined) await tellUndone(settlement.tookBack);
      return answer;
    },
    async report(intent, report) {
      const answer = await operations.report(intent, report);
      if (answer.settled) observer.settled(answer.operation);
      return answer;
    },
    giveBack: (id, giving) => operations.giveBack(id, giving),
    takeOver: (id, leaseMs, actor, holds) => operations.takeOver(id, leaseMs, actor, holds),
    reopen: (id, again) => operations.reopen(id, again),
    tryAgain: (id, fence, again) => operations.tryAgain(id, fence, again),
    confirm: (id, fence, again) => operations.confirm(id, fence, again),
    renew: (id, fence, leaseMs) => operations.renew(id, fence, leaseMs),
    get: (id) => operations.get(id),
    listBySession: (sessionId, narrow) => operations.listBySession(sessionId, narrow),
    listNewest: (sessionId, page) => operations.listNewest(sessionId, page),
    listAbandoned: (limit, held) => operations.listAbandoned(limit, held),
  };
}

/** The problems that lose or reduce an entry for a sink, each with its meaning. */
export const OBSERVER_PROBLEMS = {
  sink_failed:
    "A sink threw, so this entry is missing there. The call and the other sinks are not affected; the trail has it.",
  tool_unreadable:
    "The tool's metadata could not be read, so the operation of this entry is a guess from the tool's name.",
  undone_unread:
    "An operation was undone but could not be read again, so no sink was notified. The log has it.",
  entry_failed: "No entry could be created for an event, so no sink was notified. The log has it.",
} as const satisfies Record<string, string>;

type ObserverProblemCode = keyof typeof OBSERVER_PROBLEMS;

export interface ObserverProblem {
  readonly code: ObserverProblemCode;
  readonly message: string;
  /** The sink that threw. */
  readonly sink?: string;
  /** The entry that it missed, never with a stored path. */
  readonly entry?: ToolAuditEntry;
  /** The tool or operation, where there is no entry. */
  readonly subject?: string;
  readonly cause: unknown;
}

/** Shape: push, synchronously. Errors it throws are dropped, since there is no one left to report to. */
export type ObserverProblemListener = (problem: ObserverProblem) => void;

type TellProblem = (problem: Omit<ObserverProblem, "message">) => void;

function problemTeller(onProblem: ObserverProblemListener): TellProblem {
  return (problem) => {
    try {
      const answer: unknown = onProblem({ ...problem, message: OBSERVER_PROBLEMS[problem.code] });
      if (typeof answer === "object" && answer !== null) Promise.resolve(answer).catch(() => {});
    } catch {
      // A listener must not be able to change a call.
    }
  };
}

/** The outcome of a call: the words of its answer, and `undone` when a success was undone later. */
export const AUDIT_OUTCOMES = ["done", "denied", "failed", "unknown", "undone"] as const;
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number];

/**
 * One call as a host's sink sees it: a copy for the host's own log, not an entry of the chain.
 * docs/reference/audit-entries.md lists the names (compared by a test).
 */
export interface ToolAuditEntry {
  /** The tool's declared audit operation, otherwise a guess from its name, otherwise `invoke`. */
  readonly operation: string;
  /** The tool's registered name, or the requested name when there is no such tool. */
  readonly tool: string;
  readonly sessionId: SessionId;
  /** The agent's own id for the call. */
  readonly callId: string;
  /** When it was stored; for a refusal, when it was refused. */
  readonly at: Instant;
  readonly outcome: AuditOutcome;
  /** The turn of the conversation, 0 when unknown. */
  readonly turn: number;
  /** The path of the whole output. Only in entries for trusted sinks, and only when the output was stored. */
  readonly storedPath?: string;
}

/**
 * A host's destination for audit entries. Shape: callback; the engine calls it synchronously, after the outcome is
 * stored and before the caller gets its answer.
 *
 * A sink observes and cannot influence. Errors it throws go to `onProblem`; the outcome is unchanged, and the other
 * sinks still get the entry. Nothing is sent twice, so a consumer that needs every entry reads the chain, which is
 * complete. A promise is not awaited, and its rejection counts as a throw. The engine is blocked while `write` runs:
 * use a queue when the destination is slow.
 */
export interface AuditSink {
  /** Its name in problems. */
  readonly name: string;
  /**
   * True when only the caller's own people can read the destination. Only then it gets the stored path, which is
   * caller-specific and untrusted. Read once, when the observer is created.
   */
  readonly trusted?: boolean;
  /** The entry is frozen. */
  write(entry: ToolAuditEntry): void;
}

/** Sends an entry to every sink, to each only what it may see. Never throws. */
export type Deliver = (entry: ToolAuditEntry) => void;

/** Throws TypeError for a sink without a name or without `write`. */
function sinkDelivery(sinks: readonly AuditSink[], tell: TellProblem): Deliver {
  for (const sink of sinks) checkSink(sink);
  // The flag is read now, so that the trust in a sink does not change later.
  const places = sinks.map((sink) => ({ sink, isTrusted: sink.trusted === true }));
  return (entry) => {
    const whole = Object.freeze({ ...entry });
    const shared = withoutPath(entry);
    for (const { sink, isTrusted } of places) {
      // The report goes to the host's log, which is shared too.
      const failed = (cause: unknown) =>
        tell({ code: "sink_failed", sink: sink.name, entry: shared, cause });
      try {
        const answer: unknown = sink.write(isTrusted ? whole : shared);
        // An async function fits the type; unhandled, its rejection would end the process.
        if (typeof answer === "object" && answer !== null) Promise.resolve(answer).catch(failed);
      } catch (error) {
        failed(error);
      }
    }
  };
}

function withoutPath({ storedPath: _, ...shared }: ToolAuditEntry): ToolAuditEntry {
  return Object.freeze(shared);
}

/** Sinks may come from plain JavaScript, and one that cannot be called would only show up as missing entries. */
function checkSink(sink: Partial<AuditSink> | null | undefined): void {
  const isNamed = typeof sink?.name === "string" && sink.name.trim() !== "";
  if (isNamed && typeof sink.write === "function") return;
  throw new TypeError("An audit sink needs a name and a write function.");
}
