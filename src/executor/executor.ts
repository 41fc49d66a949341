import type { Operation } from "../model/operation.ts";
import type { Along } from "../store/along.ts";
import type { OperationStore } from "../store/operations.ts";
import { definitionHash } from "../tools/definition-hash.ts";
import { metadataOf } from "../tools/metadata.ts";
import type { ResultProcessor } from "../tools/result-processor.ts";
import type { ProbeAnswer, Tool } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { systemTimers, type Timers } from "../util/timers.ts";
import { type AttemptOptions, attempt, callOf } from "./attempt.ts";
import { type AtPoint, passBy } from "./crash-point.ts";
import type { Executed, Order } from "./order.ts";
import { createOutcomes, type Running } from "./outcomes.ts";
import { targetLooks } from "./target-looks.ts";
import { underLease } from "./under-lease.ts";

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

const MAX_REPEATS = 2;

const NOT_AGAIN = "it may not be called again now";

function isWanted({ signal }: Order): boolean {
  return signal?.aborted !== true;
}

/** Neither a key nor a probe helps: whether it happened only a person can find out. */
function isHelpless({ probe, idempotency }: Tool): boolean {
  return probe === undefined && idempotency !== "keyed";
}

export function createExecutor(options: ExecutorOptions): Executor {
  const { tenant, operations, timers = systemTimers, processor, at = passBy } = options;
  const { leaseMs = 30_000, timeoutMs = 120_000 } = options;
  const attempting: AttemptOptions = { tenant, operations, timers, leaseMs, timeoutMs, at };
  const looks = targetLooks(attempting);
  const { settle, unknown } = createOutcomes({ attempting, operations, looks, processor });

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

  async function act(
    order: Running,
    operation: Operation,
    repeats = 0,
    earlier: "open" | "none" = "none",
  ): Promise<Executed> {
    const attempted = await attempt(order, operation, attempting, earlier);
    if (attempted.ended) return settle(order, operation, attempted.result);
    if (!attempted.isOurs) {
      return { status: "overtaken", operation: await operations.get(operation.id) };
    }
    return findOut(order, operation, attempted.reason, repeats);
  }

  /**
   * The outcome of its last attempt is open. What can neither be asked about nor safely repeated is left to a person. For
   * the rest a new attempt begins, so that the target, which is handed its fence, can refuse what is late of the old one.
   */
  async function findOut(
    order: Running,
    operation: Operation,
    reason: string,
    repeats: number,
  ): Promise<Executed> {
    if (isHelpless(order.tool) || repeats >= MAX_REPEATS) return unknown(order, operation, reason);
    const begun = await tryAgain(order, operation);
    if (begun === undefined) return unknown(order, operation, `${reason}; ${NOT_AGAIN}`);
    return askOrCall(order, begun, reason, repeats);
  }

  /** In an attempt that has called nothing yet. */
  async function askOrCall(
    order: Running,
    operation: Operation,
    reason: string,
    repeats: number,
  ): Promise<Executed> {
    const { tool } = order;
    const probe = tool.probe?.bind(tool);
    if (probe === undefined) {
      if (isWanted(order)) return act(order, operation, repeats + 1, "open");
      return unknown(order, operation, reason);
    }
    let answer: ProbeAnswer;
    try {
      // Not bound to the caller's signal: who gave up waiting still wants to know what became of it.
      answer = await underLease(operation, attempting, ({ signal }) =>
        probe(callOf(order, operation, signal, attempting)),
      );
    } catch (error) {
      return unknown(order, operation, `${reason}; the probe failed: ${errorText(error)}`);
    }
    if (answer.happened === true) return settle(order, operation, answer.result);
    if (answer.happened !== false) {
      return unknown(order, operation, `${reason}; the probe says: ${answer.reason}`);
    }
    // The probe may have taken its time: somebody may have taken over, or stopped everything.
    const begun = isWanted(order) ? await tryAgain(order, operation) : undefined;
    if (begun !== undefined) return act(order, begun, repeats + 1);
    const why = isWanted(order) ? NOT_AGAIN : "nobody waits for it any more";
    return settle(order, operation, { text: `Not executed: ${reason}; ${why}.`, isError: true });
  }

  /** To call a tool once more is a new effect: only who still has the operation may, and nobody while all is stopped. */
  async function tryAgain(order: Order, { id, fence }: Operation): Promise<Operation | undefined> {
    const { actor, holds = [] } = order;
    at("S5.before");
    const begun = await operations.tryAgain(id, fence, { leaseMs, actor, along: holds });
    at("S5.after");
    return begun;
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
      const why = "the process that started it went away";
      if (isHelpless(order.tool)) return unknown(order, taken, why);
      return askOrCall(running, taken, why, 0);
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
