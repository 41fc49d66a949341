// Step "attempt": the intent, the call of the tool under a lease, and the next attempt after a lost answer. The only file that
// calls a tool's execute or probe. Before it: run, or a session for a call that needs no person. After it: settle.

import { SallyportError } from "../model/errors.ts";
import type { Operation } from "../model/operation.ts";
import type { Along } from "../store/engine.ts";
import { definitionHash } from "../tools/registry.ts";
import type { ProbeAnswer, Progress, Tool, ToolResult } from "../tools/tool.ts";
import { metadataOf } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { definedFields } from "../util/defined-fields.ts";
import { errorText } from "../util/error-text.ts";
import { firstOf, type Stop } from "../util/timers.ts";
import type { ExecutionContext } from "./context.ts";
import {
  callOf,
  type Executed,
  LeaseLostError,
  lookBefore,
  type Order,
  underLease,
} from "./order.ts";
import { type Running, settle, settleUnknown } from "./settle.ts";

/** An operation that this process holds, and when it asked for the lease: the answer may have taken longer than the lease. */
interface Held {
  readonly operation: Operation;
  readonly askedAt: number;
}

/** What is known of earlier attempts at the same operation: `open` means that one of them may have happened. */
type Earlier = "open" | "none";

const MAX_REPEATS = 2;
/** After so many late answers of the store no effect is begun. */
const MAX_CONFIRMS = 3;

const NOT_AGAIN = "it may not be called again now";
/** Why a call whose store took longer than its lease was not made. */
export const TOO_LATE =
  "the store confirmed the intent too late, and the call may not start any more";

/**
 * Intent, call, outcome. Throws only when the store fails before the intent is written, or leaves open whether it is; from
 * then on a failure of the store is answered as `unknown`, and recovery finds out what happened.
 */
export async function runOrder(context: ExecutionContext, order: Order): Promise<Executed> {
  if (definitionHash(order.tool) !== order.definitionHash) {
    return { status: "refused", reason: "definition_changed" };
  }
  const { store, timers, leaseMs, at } = context;
  const askedAt = timers.elapsedMs();
  at("S5.before");
  const begun = await store.operations.start({
    id: order.operationId,
    sessionId: order.sessionId,
    messageId: order.messageId,
    callId: order.callId,
    turn: order.turn,
    tool: order.tool.name,
    definitionHash: order.definitionHash,
    input: canonicalJson(order.input),
    workingDirectory: order.workingDirectory,
    ...(order.chain === undefined ? {} : { chain: order.chain }),
    step: order.step,
    effect: metadataOf(order.tool).effect,
    undoOf: order.undoOf ?? "",
    approval: order.approval,
    leaseMs,
    actor: order.actor,
    ...(order.holds === undefined ? {} : { holds: order.holds }),
    ...definedFields({ allowedBy: order.allowedBy, yes: order.yes }),
  });
  if (begun.started && order.yes !== undefined) at("S4.after");
  at("S5.after");
  if (!begun.started) {
    const { reason, operation } = begun;
    return { status: "refused", reason, ...(operation === undefined ? {} : { operation }) };
  }
  const { operation, interaction } = begun;
  const executed = await pastIntent(context, order, operation, async (followed) => {
    const { moved, ...seen } = await lookBefore(context, followed, operation);
    const running = { ...followed, ...seen };
    return moved === undefined
      ? act(context, running, { operation, askedAt })
      : settle(context, running, operation, { text: moved, isError: true });
  });
  return interaction === undefined ? executed : { ...executed, interaction };
}

/**
 * Continues an operation that another process started and left. Keyed tools are called again with the same key, tools with
 * a probe are asked first; for the others nothing is repeated, and a person is asked.
 */
export async function resumeOrder(
  context: ExecutionContext,
  order: Order,
  abandoned: Operation,
): Promise<Executed> {
  const { store, timers, leaseMs, at } = context;
  // A new attempt begins with a write of its own, as the first one did.
  const askedAt = timers.elapsedMs();
  at("S5.before");
  const { id } = abandoned;
  const operation = await store.operations.takeOver(id, leaseMs, order.actor, order.holds);
  at("S5.after");
  if (operation === undefined) {
    return { status: "overtaken", operation: await store.operations.get(id) };
  }
  return pastIntent(context, order, operation, async (followed) => {
    if (definitionHash(order.tool) !== abandoned.definitionHash) {
      const why = "the tool was changed while its outcome was open";
      return settleUnknown(context, order, operation, why);
    }
    const running = { ...followed, versionBefore: "" };
    const why = "the process that started it went away";
    if (isHelpless(order.tool)) return settleUnknown(context, order, operation, why);
    return askOrCall(context, running, { operation, askedAt }, why, 0);
  });
}

/** A person says that it did not happen and should be tried once more; `along` is that answer, written with the new attempt. */
export async function repeatOrder(
  context: ExecutionContext,
  order: Order,
  { id }: Operation,
  along: readonly Along[],
): Promise<Executed> {
  if (definitionHash(order.tool) !== order.definitionHash) {
    return { status: "refused", reason: "definition_changed" };
  }
  const { store, timers, leaseMs, at } = context;
  const { actor } = order;
  const askedAt = timers.elapsedMs();
  at("S5.before");
  const operation = await store.operations.reopen(id, { leaseMs, actor, along });
  at("S5.after");
  if (operation === undefined) {
    return { status: "overtaken", operation: await store.operations.get(id) };
  }
  return pastIntent(context, order, operation, async (followed) => {
    const running = { ...followed, versionBefore: "" };
    const late = await arrivedSince(context, order, operation);
    if (late === "lease lost") {
      return { status: "overtaken", operation: await store.operations.get(id) };
    }
    if (late !== undefined) return settle(context, running, operation, late);
    return act(context, running, { operation, askedAt });
  });
}

/**
 * A call of an earlier attempt may have reached the target after the person looked, so a tool with a probe is asked once
 * more. Only a clear yes counts: the person has looked, and a probe that fails knows no better.
 */
async function arrivedSince(
  context: ExecutionContext,
  order: Order,
  operation: Operation,
): Promise<ToolResult | "lease lost" | undefined> {
  const probe = order.tool.probe?.bind(order.tool);
  if (probe === undefined) return undefined;
  try {
    const answer = await underLease(context, operation, ({ signal }) =>
      probe(callOf(context, order, operation, signal)),
    );
    return answer.happened === true ? answer.result : undefined;
  } catch (error) {
    return error instanceof LeaseLostError ? "lease lost" : undefined;
  }
}

/**
 * The intent is written, so the effect may happen or have happened. An error of the store says nothing about that, and it
 * must not reach the caller as one that is safe to repeat. From here on the call can be cancelled and followed, whoever began
 * it.
 */
async function pastIntent(
  { running }: ExecutionContext,
  order: Order,
  operation: Operation,
  work: (followed: Order) => Promise<Executed>,
): Promise<Executed> {
  const { sessionId, callId, signal } = order;
  const begun = running.begin(sessionId, [callId]);
  const either = firstOf(begun.signal, signal);
  const progress = (report: Progress) => running.report(sessionId, callId, report);
  try {
    return await work({ ...order, signal: either, progress });
  } catch (error) {
    if (!(error instanceof SallyportError)) throw error;
    const why = `its outcome could not be recorded: ${errorText(error)}`;
    return { status: "unknown", operation: { ...operation, error: why } };
  } finally {
    begun.end();
  }
}

async function act(
  context: ExecutionContext,
  order: Running,
  given: Held,
  repeats = 0,
  earlier: Earlier = "none",
): Promise<Executed> {
  const { operation, isHeld } = await confirmHold(context, order, given);
  if (!isHeld) {
    if (earlier === "open") return settleUnknown(context, order, operation, TOO_LATE);
    const result = { text: `Not executed: ${TOO_LATE}.`, isError: true };
    return settle(context, order, operation, result);
  }
  const attempted = await attempt(context, order, operation);
  if (attempted.ended) return settle(context, order, operation, attempted.result);
  if (!attempted.isOurs) {
    return { status: "overtaken", operation: await context.store.operations.get(operation.id) };
  }
  return findOut(context, order, operation, attempted.reason, repeats);
}

/**
 * Right before the tool is called: when the answer of the store took more than half the lease, another process may have
 * taken over or everything may have been stopped, so the right to call is asked for again. The operation is the last one that
 * was ours: its fence is the one under which "not executed" can be recorded.
 */
async function confirmHold(
  { store: { operations }, timers, leaseMs }: ExecutionContext,
  order: Order,
  held: Held,
): Promise<{ readonly operation: Operation; readonly isHeld: boolean }> {
  const { actor, holds = [] } = order;
  const along = holds.filter(({ step }) => step.op === "require");
  let { operation, askedAt } = held;
  for (let tries = 0; timers.elapsedMs() - askedAt > leaseMs / 2; tries += 1) {
    if (tries === MAX_CONFIRMS) return { operation, isHeld: false };
    askedAt = timers.elapsedMs();
    const { id, fence } = operation;
    const again = { leaseMs, actor, along };
    // Where only the lease ran out, and no process took over, a new attempt begins under a new fence.
    const confirmed =
      (await operations.confirm(id, fence, again)) ?? (await operations.tryAgain(id, fence, again));
    if (confirmed === undefined) return { operation, isHeld: false };
    operation = confirmed;
  }
  return { operation, isHeld: true };
}

type Attempted =
  | { readonly ended: true; readonly result: ToolResult }
  /** It may or may not have happened. With the lease lost it is for another process to find out. */
  | { readonly ended: false; readonly reason: string; readonly isOurs: boolean };

/**
 * Calls the tool once, under a lease that is renewed while it works. A result with `isError` is how a tool says that it did
 * not happen. An exception leaves the outcome open, unless the tool only reads: a dropped connection, the most common
 * exception, says nothing about what the target has done.
 */
async function attempt(
  context: ExecutionContext,
  order: Order,
  operation: Operation,
): Promise<Attempted> {
  const { at } = context;
  try {
    at("S6.before");
    const work = ({ signal }: Stop) =>
      order.tool.execute(callOf(context, order, operation, signal));
    const result = await underLease(context, operation, work, order.signal);
    at("S6.after");
    return { ended: true, result };
  } catch (error) {
    const reason = errorText(error);
    if (metadataOf(order.tool).effect === "read") {
      return { ended: true, result: { text: reason, isError: true } };
    }
    return { ended: false, reason, isOurs: !(error instanceof LeaseLostError) };
  }
}

/**
 * The outcome of the last attempt is open. A tool that can neither be probed nor safely repeated is left to a person. For
 * the others a new attempt begins, so that the target, which gets the new fence, can refuse what is late of the old one.
 */
async function findOut(
  context: ExecutionContext,
  order: Running,
  operation: Operation,
  reason: string,
  repeats: number,
): Promise<Executed> {
  if (isHelpless(order.tool) || repeats >= MAX_REPEATS) {
    return settleUnknown(context, order, operation, reason);
  }
  const begun = await tryAgain(context, order, operation);
  if (begun === undefined) {
    return settleUnknown(context, order, operation, `${reason}; ${NOT_AGAIN}`);
  }
  return askOrCall(context, order, begun, reason, repeats);
}

/** In an attempt that has called nothing yet. */
async function askOrCall(
  context: ExecutionContext,
  order: Running,
  held: Held,
  reason: string,
  repeats: number,
): Promise<Executed> {
  const { tool } = order;
  const { operation } = held;
  const probe = tool.probe?.bind(tool);
  if (probe === undefined) {
    if (isWanted(order)) return act(context, order, held, repeats + 1, "open");
    return settleUnknown(context, order, operation, reason);
  }
  let answer: ProbeAnswer;
  try {
    // Not bound to the caller's signal: a caller that stopped waiting still wants to know the outcome.
    answer = await underLease(context, operation, ({ signal }) =>
      probe(callOf(context, order, operation, signal)),
    );
  } catch (error) {
    const why = `${reason}; the probe failed: ${errorText(error)}`;
    return settleUnknown(context, order, operation, why);
  }
  if (answer.happened === true) return settle(context, order, operation, answer.result);
  if (answer.happened !== false) {
    return settleUnknown(context, order, operation, `${reason}; the probe says: ${answer.reason}`);
  }
  // The probe may have been slow: another process may have taken over, or an operator may have stopped everything.
  const begun = isWanted(order) ? await tryAgain(context, order, operation) : undefined;
  if (begun !== undefined) return act(context, order, begun, repeats + 1);
  const why = isWanted(order) ? NOT_AGAIN : "its caller no longer waits for it";
  const result = { text: `Not executed: ${reason}; ${why}.`, isError: true };
  return settle(context, order, operation, result);
}

/** Calling a tool again is a new effect: only the holder of the operation may, and not while everything is stopped. */
async function tryAgain(
  { store, timers, leaseMs, at }: ExecutionContext,
  order: Order,
  { id, fence }: Operation,
): Promise<Held | undefined> {
  const { actor, holds = [] } = order;
  const askedAt = timers.elapsedMs();
  at("S5.before");
  const operation = await store.operations.tryAgain(id, fence, { leaseMs, actor, along: holds });
  at("S5.after");
  return operation && { operation, askedAt };
}

function isWanted({ signal }: Order): boolean {
  return signal?.aborted !== true;
}

/** Neither a key nor a probe helps: only a person can find out whether it happened. */
function isHelpless({ probe, idempotency }: Tool): boolean {
  return probe === undefined && idempotency !== "keyed";
}
