// What a permit means for its tool: the intent is written, the tool keeps what the call will change, and when the executor has
// reported, the tool says how to undo it. Used by permits of decisions and by those that rules allow.

import { SallyportError } from "../model/errors.ts";
import type { Operation } from "../model/operation.ts";
import type { Intent, StartAnswer } from "../store/operations.ts";
import type { ToolCall } from "../tools/tool.ts";
import { lostUndo, type MadeUndo, makeUndo } from "../tools/tool-call.ts";
import { errorText } from "../util/error-text.ts";
import { withDeadline } from "../util/timers.ts";
import type { GateContext } from "./context.ts";

const LEAST_LEASE_MS = 1_000;
const MOST_LEASE_MS = 3_600_000;

export function checkPermitLease(leaseMs: number): void {
  const isSpan = Number.isSafeInteger(leaseMs);
  if (isSpan && leaseMs >= LEAST_LEASE_MS && leaseMs <= MOST_LEASE_MS) return;
  const hint = `Give whole milliseconds from ${LEAST_LEASE_MS} to ${MOST_LEASE_MS}.`;
  throw new SallyportError("invalid_input", { what: "leaseMs", hint });
}

/** The intent, then what the tool wants to keep before its executor begins. */
export async function startPermit(context: GateContext, intent: Intent): Promise<StartAnswer> {
  const { store, at } = context;
  checkPermitLease(intent.leaseMs);
  at("S5.before");
  const begun = await store.operations.start(intent);
  at("S5.after");
  if (begun.started) await prepare(context, begun.operation);
  return begun;
}

/** A tool that cannot prepare gets no permit: its call could not be undone as its reviewers were shown. */
async function prepare(context: GateContext, operation: Operation): Promise<void> {
  const { registry, store, timers, timeoutMs } = context;
  const { id, fence, executor: actor } = operation;
  const tool = registry.get(operation.tool);
  const prepares = tool?.prepare?.bind(tool);
  if (prepares === undefined) return;
  try {
    await withDeadline((signal) => prepares(callIn(context, operation, signal)), timeoutMs, timers);
  } catch (error) {
    await store.operations.giveBack(id, { fence, from: "started", actor });
    const hint = `It could not be prepared, so nothing was executed: ${errorText(error)}.`;
    throw new SallyportError("not_allowed", { id, hint }, error);
  }
}

function callIn(
  { store: { tenant } }: GateContext,
  { id, callId, input, sessionId, workingDirectory, fence }: Operation,
  signal: AbortSignal,
): ToolCall {
  const idempotencyKey = `${tenant}/${id}`;
  const about = { tenant, sessionId, workingDirectory, idempotencyKey, fence };
  return { callId, input: JSON.parse(input), context: { ...about, signal, progress: () => {} } };
}

export function permitOf({ store }: GateContext, operation: Operation) {
  const { id, decisionId, sessionId, fence, leaseUntil } = operation;
  const idempotencyKey = `${store.tenant}/${id}`;
  return { id, decisionId, sessionId, fence, leaseUntil, idempotencyKey };
}

/** Made by the tool from what it prepared and from the reported proof. Never throws: what happened is recorded without it. */
export async function undoOfReport(
  context: GateContext,
  operation: Operation,
  { proof, output = "" }: { readonly proof?: unknown; readonly output?: string },
): Promise<MadeUndo> {
  const { registry, timers, timeoutMs } = context;
  const tool = registry.get(operation.tool);
  if (tool?.generateUndo === undefined) return {};
  const result = { text: output, data: proof ?? null };
  try {
    return await withDeadline(
      (signal) => makeUndo(tool, callIn(context, operation, signal), result),
      timeoutMs,
      timers,
    );
  } catch (error) {
    return lostUndo(tool, errorText(error));
  }
}
