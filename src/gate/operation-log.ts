// The operation log: what the calls of a session did, as lines to read, to follow or to roll back.

import { type FollowOptions, followTrail } from "../audit/trail.ts";
import type { AuditEntry } from "../model/audit-entry.ts";
import type { SessionId } from "../model/decision.ts";
import { SallyportError } from "../model/errors.ts";
import { checkName, type Instant } from "../model/names.ts";
import type { Operation, OperationId } from "../model/operation.ts";
import type { CounterfactualEvent } from "../policy/reverse-thinking.ts";
import type { Narrow, OperationStore } from "../store/operations.ts";
import type { AuditReader } from "../store/store.ts";
import type { ResultPart, ResultRange } from "../tools/result-store.ts";
import type { GateContext } from "./context.ts";

/**
 * One line of the operation log: what any kind of call did and how to take it back. Beside success, failed and rolled_back
 * it shows what has no outcome yet (started, unknown), because a log that hides those looks complete when it is not.
 */
export type LogEntry = Pick<
  Operation,
  | "id"
  | "messageId"
  | "callId"
  | "tool"
  | "input"
  | "output"
  | "undo"
  | "undoOf"
  | "turn"
  | "status"
  | "truncated"
  | "storedPath"
  | "error"
> & { readonly at: Instant };

/**
 * The pull view: a session's log, or one message's, oldest first, as it is now. It does not change afterwards.
 *
 *     const log = await readLog(gate.operations, { sessionId: session.id });
 */
export async function readLog(
  operations: Pick<OperationStore, "listBySession">,
  scope: LogScope,
): Promise<readonly LogEntry[]> {
  return (await listOperations(operations, scope)).map(logEntryOf);
}

export function logEntryOf(operation: Operation): LogEntry {
  const { id, messageId, callId, tool, input, output, undo, undoOf, turn } = operation;
  const { status, truncated, storedPath, error, createdAt: at } = operation;
  return Object.freeze({
    ...{ id, messageId, callId, tool, input, output, undoOf, turn },
    ...{ status, truncated, storedPath, error, at },
    undo: structuredClone(undo),
  });
}

/** `recorded` when an outcome was recorded, `rolled_back` when an operation was undone. */
export interface OperationEvent {
  readonly event: "recorded" | "rolled_back";
  /** The status it got by this; reading the log now may give a later one. */
  readonly status: "success" | "failed" | "unknown" | "rolled_back";
  readonly operationId: OperationId;
  readonly sessionId: SessionId;
  readonly actor: string;
  readonly at: Instant;
  /** Its number in the trail: go on after it when you were cut off. */
  readonly seq: number;
}

/** Shape: push, one event after the other; the next one comes when it is done with this one. */
export type OperationObserver = (event: OperationEvent) => void | Promise<void>;

/**
 * The push view: calls the observer for each event after `options.after`, in order, one after the other, until the signal
 * is aborted. It is read from the trail, so it misses no outcome and no rollback of any process. An observer that
 * throws ends it with that error, because going on would lose the event: start again after the last `seq` that went well.
 *
 *     await onOperation(gate.audit, ({ operationId, status }) => console.log(operationId, status), { after: 0, signal });
 */
export async function onOperation(
  audit: AuditReader,
  observer: OperationObserver,
  options: FollowOptions,
): Promise<void> {
  for await (const entry of followTrail(audit, options)) {
    const event = eventOf(entry);
    if (event !== undefined) await observer(event);
  }
}

const STATUSES = new Map<string, OperationEvent["status"]>([
  ["operation.succeeded", "success"],
  ["operation.failed", "failed"],
  ["operation.lost", "unknown"],
  ["operation.undone", "rolled_back"],
]);

function eventOf(entry: AuditEntry): OperationEvent | undefined {
  const status = STATUSES.get(entry.type);
  if (status === undefined) return undefined;
  const { subject: operationId, session: sessionId, actor, at, seq } = entry;
  const event = status === "rolled_back" ? "rolled_back" : "recorded";
  return { event, status, operationId, sessionId, actor, at, seq };
}

/** A whole session or one message of it. */
export interface LogScope {
  readonly sessionId: SessionId;
  readonly messageId?: string;
}

/** Everything a session or a message did, oldest first, however much it is. Throws invalid_input for an empty name. */
export async function listOperations(
  operations: Pick<OperationStore, "listBySession">,
  scope: LogScope,
  narrow: Pick<Narrow, "without"> = {},
): Promise<readonly Operation[]> {
  const { sessionId, messageId } = scope;
  checkName("session id", sessionId);
  // A message id that got lost on the way must not turn one message into the whole session.
  if (Object.hasOwn(scope, "messageId")) checkName("message id", messageId);
  const part = messageId === undefined ? narrow : { ...narrow, messageId };
  return operations.listBySession(sessionId, part);
}

/** A counter-check that a call was made with, and its place in the trail. */
export interface Counterfactual extends CounterfactualEvent {
  readonly seq: number;
}

const PAGE = 1_000;

/** The counter-checks in the trail, oldest first, however many. */
export async function counterfactualsOf(
  audit: AuditReader,
  after: number,
): Promise<readonly Counterfactual[]> {
  const found: Counterfactual[] = [];
  for (let last = after; ; ) {
    const page = await audit.read({ after: last, limit: PAGE });
    for (const entry of page) {
      last = entry.seq;
      const one = counterfactualIn(entry);
      if (one !== undefined) found.push(one);
    }
    if (page.length < PAGE) return found;
  }
}

/** The counter-check that an entry records, if it records one. */
export function counterfactualIn({
  seq,
  type,
  data,
}: Pick<AuditEntry, "seq" | "type" | "data">): Counterfactual | undefined {
  if (type !== "gate.evaluated" || data === null) return undefined;
  const { call } = JSON.parse(data) as { readonly call?: Partial<CounterfactualEvent> };
  return call?.kind === "counterfactual" ? { ...(call as CounterfactualEvent), seq } : undefined;
}

const LONGEST_OUTPUT = 256 * 1024;

/** See `Gate.outputOf`. The path of a stored output stays here: it is a place on the operator's disk. */
export async function outputOf(
  { store, processor }: Pick<GateContext, "store" | "processor">,
  id: OperationId,
  range: ResultRange,
): Promise<ResultPart> {
  const { sessionId, output, truncated, storedPath } = await store.operations.get(id);
  if (!truncated) {
    const bytes = Buffer.from(output.toWellFormed());
    const { offset = 0, length = LONGEST_OUTPUT } = range;
    const part = bytes.subarray(offset, offset + length);
    const nextOffset = Math.min(offset, bytes.byteLength) + part.byteLength;
    return { text: part.toString("utf8"), nextOffset, totalBytes: bytes.byteLength };
  }
  const owner = { tenant: store.tenant, sessionId };
  const part = await processor?.read?.(owner, storedPath, range);
  if (part !== undefined) return part;
  const hint =
    "The whole output is not kept here any more, or by another process. What is recorded is its beginning.";
  throw new SallyportError("not_found", { id, hint });
}
