import type { Operation } from "../model/operation.ts";
import type { Along } from "../store/along.ts";
import type { OperationStore, Outcome } from "../store/operations.ts";
import { definitionHash } from "../tools/definition-hash.ts";
import { makeUndo, mayHaveUndo } from "../tools/make-undo.ts";
import { metadataOf } from "../tools/metadata.ts";
import { processResult, type ResultProcessor } from "../tools/result-processor.ts";
import type { ToolResult } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import { type AttemptOptions, attempt, callOf } from "./attempt.ts";
import { type AtPoint, passBy } from "./crash-point.ts";
import { lostQuestion } from "./lost-question.ts";
import type { Executed, Order } from "./order.ts";
import { targetLooks } from "./target-looks.ts";

export interface ExecutorOptions {
  readonly tenant: string;
  readonly operations: OperationStore;
  readonly timers?: Timers;
  /** How long an attempt holds before another process may take over; renewed while the tool works. */
  readonly leaseMs?: number;
  readonly timeoutMs?: number;
  readonly processor?: ResultProcessor;
  readonly at?: AtPoint;
}

/** Carries out what was allowed, once. The only place that calls a tool. */
export interface Executor {
  /** Intent, act, outcome. Throws only when the store fails; then `recover` finds out what happened. */
  run(order: Order): Promise<Executed>;
  /**
   * Goes on with an operation that somebody started and left. Keyed tools are called again with the same key, tools with a
   * probe are asked first; of the others nobody can know, and nothing is repeated.
   */
  resume(order: Order, operation: Operation): Promise<Executed>;
  /** A person says that it did not happen and should be tried once more; `along` is that answer, written with the new attempt. */
  repeat(order: Order, operation: Operation, along: readonly Along[]): Promise<Executed>;
}

/** An order under way, and the version of its target before. Empty: nobody looked, or nobody could. */
type Running = Order & { readonly versionBefore: string };

const MAX_REPEATS = 2;
const NEVER = new AbortController().signal;

export function createExecutor(options: ExecutorOptions): Executor {
  const { tenant, operations, timers = systemTimers, processor, at = passBy } = options;
  const { leaseMs = 30_000, timeoutMs = 120_000 } = options;
  const attempting: AttemptOptions = { tenant, operations, timers, leaseMs, timeoutMs, at };
  const looks = targetLooks(attempting);

  async function run(order: Order): Promise<Executed> {
    if (definitionHash(order.tool) !== order.definitionHash) {
      return { status: "refused", reason: "definition_changed" };
    }
    at("S5.before");
    const begun = await operations.start({
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
      ...(order.allowedBy === undefined ? {} : { allowedBy: order.allowedBy }),
    });
    at("S5.after");
    if (begun.started) {
      const { versionBefore, moved } = await looks.before(order, begun.operation);
      const running = { ...order, versionBefore };
      return moved === undefined
        ? act(running, begun.operation)
        : settle(running, begun.operation, { text: moved, isError: true });
    }
    const { reason, operation } = begun;
    return { status: "refused", reason, ...(operation === undefined ? {} : { operation }) };
  }

  async function act(order: Running, operation: Operation, repeats = 0): Promise<Executed> {
    const attempted = await attempt(order, operation, attempting);
    if (attempted.ended) return settle(order, operation, attempted.result);
    if (!attempted.isOurs) {
      return { status: "overtaken", operation: await operations.get(operation.id) };
    }
    return findOut(order, operation, attempted.reason, repeats);
  }

  /** Its outcome is open: probe first, repeat only where that is safe, otherwise say so. */
  async function findOut(
    order: Running,
    operation: Operation,
    reason: string,
    repeats: number,
  ): Promise<Executed> {
    const { tool } = order;
    if (repeats >= MAX_REPEATS) return unknown(order, operation, reason);
    if (tool.probe === undefined) {
      if (tool.idempotency !== "keyed") return unknown(order, operation, reason);
      return act(order, operation, repeats + 1);
    }
    try {
      const answer = await tool.probe(callOf(order, operation, order.signal ?? NEVER, attempting));
      if (answer.happened === true) return settle(order, operation, answer.result);
      if (answer.happened === false) return act(order, operation, repeats + 1);
      return unknown(order, operation, `${reason}; the probe says: ${answer.reason}`);
    } catch (error) {
      return unknown(order, operation, `${reason}; the probe failed: ${errorText(error)}`);
    }
  }

  async function settle(
    order: Running,
    operation: Operation,
    result: ToolResult,
  ): Promise<Executed> {
    const owner = { tenant, sessionId: order.sessionId };
    const { text, truncated, storedPath } = await processResult(processor, owner, result.text);
    const shown: ToolResult = { ...result, text };
    if (result.isError === true) {
      const failed = {
        status: "failed",
        error: text,
        output: text,
        truncated,
        storedPath,
      } as const;
      return record(order, operation, failed, shown);
    }
    const call = callOf(order, operation, order.signal ?? NEVER, attempting);
    // Nothing takes an undo back, so none is recorded for it.
    const { undo: made, lost } =
      order.undoOf === undefined && mayHaveUndo(order.tool, result)
        ? await makeUndo(order.tool, call, result)
        : {};
    const { versionBefore } = order;
    const undo = made && versionBefore !== "" ? { ...made, versionBefore } : made;
    const outcome: Outcome = {
      status: "success",
      output: lost === undefined ? text : `${text}\n${lost}`,
      truncated,
      storedPath,
      undo,
      stateVersion: await looks.after(order, operation),
    };
    return record(order, operation, outcome, { ...shown, ...(undo === undefined ? {} : { undo }) });
  }

  function unknown(order: Order, operation: Operation, error: string): Promise<Executed> {
    return record(order, operation, { status: "unknown", error }, { text: error, isError: true });
  }

  async function record(
    order: Order,
    begun: Operation,
    outcome: Outcome,
    result: ToolResult,
  ): Promise<Executed> {
    const { id, fence } = begun;
    const closes = order.closes?.(outcome);
    const tookBack = outcome.status === "success" ? order.undoOf : undefined;
    const broughtBack = tookBack === undefined ? [] : await looks.broughtBack(order);
    const along = outcome.status === "unknown" ? [lostQuestion(order, begun, outcome.error)] : [];
    const settlement = { fence, outcome, actor: order.actor, along };
    at("S7.before");
    const brings = {
      ...settlement,
      ...(closes === undefined ? {} : { closes }),
      ...(tookBack === undefined ? {} : { tookBack }),
    };
    const whole = broughtBack.length === 0 ? brings : { ...brings, broughtBack };
    let { settled, operation } = await operations.settle(id, whole);
    for (const less of [brings, settlement]) {
      if (settled || operation.status !== "started" || operation.fence !== fence) break;
      // Not overtaken: what comes with it was settled by hand in the meantime. Its own outcome counts all the same, or it
      // would be taken for abandoned, and tried again, for ever.
      ({ settled, operation } = await operations.settle(id, less));
    }
    at("S7.after");
    if (!settled) return { status: "overtaken", operation };
    if (outcome.status === "unknown") return { status: "unknown", operation };
    return { status: outcome.status === "success" ? "done" : "failed", operation, result };
  }

  return {
    run,
    async resume(order, operation) {
      // A new attempt begins with a write of its own, as the first one did.
      at("S5.before");
      const taken = await operations.takeOver(operation.id, leaseMs, order.actor, order.holds);
      at("S5.after");
      if (taken === undefined) {
        return { status: "overtaken", operation: await operations.get(operation.id) };
      }
      if (definitionHash(order.tool) !== operation.definitionHash) {
        return unknown(order, taken, "the tool was changed while its outcome was open");
      }
      const running = { ...order, versionBefore: "" };
      return findOut(running, taken, "the process that started it went away", 0);
    },
    async repeat(order, operation, along) {
      if (definitionHash(order.tool) !== order.definitionHash) {
        return { status: "refused", reason: "definition_changed" };
      }
      const { actor } = order;
      at("S5.before");
      const begun = await operations.reopen(operation.id, { leaseMs, actor, along });
      at("S5.after");
      if (begun !== undefined) return act({ ...order, versionBefore: "" }, begun);
      return { status: "overtaken", operation: await operations.get(operation.id) };
    },
  };
}
