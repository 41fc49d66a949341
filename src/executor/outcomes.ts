import { isSallyportError } from "../model/errors.ts";
import type { Operation, RecordedUndo } from "../model/operation.ts";
import type { OperationStore, Outcome, Settlement } from "../store/operations.ts";
import { lostUndo, type MadeUndo, makeUndo, mayHaveUndo } from "../tools/make-undo.ts";
import { metadataOf } from "../tools/metadata.ts";
import {
  type ProcessedResult,
  processResult,
  type ResultProcessor,
} from "../tools/result-processor.ts";
import type { ToolResult } from "../tools/tool.ts";
import { errorText } from "../util/error-text.ts";
import { type AttemptOptions, callOf } from "./attempt.ts";
import { lostQuestion } from "./lost-question.ts";
import type { Executed, Order } from "./order.ts";
import type { Looked, TargetLooks } from "./target-looks.ts";
import { underLease } from "./under-lease.ts";

/** An order under way, and what was seen right before it. */
export type Running = Order & Pick<Looked, "versionBefore" | "watched">;

export interface OutcomeParts {
  readonly attempting: AttemptOptions;
  readonly operations: OperationStore;
  readonly looks: TargetLooks;
  readonly processor: ResultProcessor | undefined;
}

/** How an operation ends: what it said and how to take it back, or that nobody knows. */
export interface Outcomes {
  settle(order: Running, operation: Operation, result: ToolResult): Promise<Executed>;
  unknown(order: Order, operation: Operation, error: string): Promise<Executed>;
}

type Settled = Awaited<ReturnType<OperationStore["settle"]>>;

/** A failed call that wanted to be undone and cannot be: a person has to look. */
function byHand(manualGuide: string): RecordedUndo {
  return { tool: "", input: null, description: "", irreversible: true, manualGuide };
}

const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 500;

/** Errors of the store that may be over in a moment. */
function isPassing(error: unknown): boolean {
  const codes = ["store_unavailable", "store_busy", "commit_unknown"] as const;
  return codes.some((code) => isSallyportError(error, code));
}

export function createOutcomes({
  attempting,
  operations,
  looks,
  processor,
}: OutcomeParts): Outcomes {
  const { tenant, at } = attempting;

  async function settle(
    order: Running,
    operation: Operation,
    result: ToolResult,
  ): Promise<Executed> {
    const { text, truncated, storedPath } = await shortened(order, operation, result.text);
    const { undo, lost, stateVersion } = await wayBack(order, operation, result);
    const shown: ToolResult = { ...result, text };
    if (result.isError === true) {
      const failed = {
        status: "failed",
        error: text,
        output: text,
        truncated,
        storedPath,
      } as const;
      const kept = undo ?? (lost === undefined ? undefined : byHand(lost));
      const outcome = kept === undefined ? failed : { ...failed, undo: kept, stateVersion };
      return record(order, operation, outcome, shown);
    }
    const outcome: Outcome = {
      status: "success",
      output: lost === undefined ? text : `${text}\n${lost}`,
      truncated,
      storedPath,
      undo,
      stateVersion,
    };
    return record(order, operation, outcome, { ...shown, ...(undo === undefined ? {} : { undo }) });
  }

  /** A call that failed is looked after only when it says itself how to undo what it did all the same. */
  async function wayBack(
    order: Running,
    operation: Operation,
    result: ToolResult,
  ): Promise<MadeUndo & { readonly stateVersion: string; readonly undo?: RecordedUndo }> {
    const { tool, undoOf, versionBefore } = order;
    const isFailed = result.isError === true;
    if (isFailed && (result.undo === undefined || metadataOf(tool).effect === "read")) {
      return { stateVersion: "" };
    }
    // Nothing takes an undo back, so none is recorded for it.
    const isWanted = undoOf === undefined && mayHaveUndo(tool, result);
    const { undo: made, ...lost } = isWanted ? await undoFor(order, operation, result) : {};
    const { stateVersion, alsoChanged } = await looks.after(order, operation);
    if (made === undefined) return { ...lost, stateVersion };
    const undo = {
      ...made,
      ...(versionBefore === "" ? {} : { versionBefore }),
      ...(alsoChanged.length === 0 ? {} : { alsoChanged }),
    };
    return { undo, stateVersion };
  }

  /** It may take secrets out of the output, so without it nothing of the output is shown. */
  async function shortened(
    { sessionId }: Order,
    operation: Operation,
    text: string,
  ): Promise<ProcessedResult> {
    const process = () => processResult(processor, { tenant, sessionId }, text);
    if (processor === undefined) return process();
    try {
      return await underLease(operation, attempting, process);
    } catch (error) {
      const withheld = `[The output is withheld: it could not be looked through (${errorText(error)}).]`;
      return { text: withheld, truncated: false, storedPath: "" };
    }
  }

  /** What was done is done, and counts as done, although its way back may not come. */
  async function undoFor(
    order: Order,
    operation: Operation,
    result: ToolResult,
  ): Promise<MadeUndo> {
    const { tool } = order;
    try {
      return await underLease(operation, attempting, ({ signal }) =>
        makeUndo(tool, callOf(order, operation, signal, attempting), result),
      );
    } catch (error) {
      return lostUndo(tool, errorText(error));
    }
  }

  function unknown(order: Order, operation: Operation, error: string): Promise<Executed> {
    return record(order, operation, { status: "unknown", error }, { text: error, isError: true });
  }

  /**
   * The outcome is known only here, so one failed write must not lose it. Safe to repeat: the fence lets it in once, and a
   * second look finds what the first one wrote although its answer was lost.
   */
  async function persistently(id: string, settlement: Settlement): Promise<Settled> {
    const { timers, leaseMs } = attempting;
    const since = timers.elapsedMs();
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      try {
        const { settled, operation } = await operations.settle(id, settlement);
        const { fence, outcome } = settlement;
        const isThere = operation.fence === fence && operation.status === outcome.status;
        return { settled: settled || isThere, operation };
      } catch (error) {
        if (!isPassing(error) || timers.elapsedMs() - since + pauseMs > leaseMs) throw error;
        await timers.sleep(pauseMs);
      }
    }
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
    let { settled, operation } = await persistently(id, whole);
    for (const less of [brings, settlement]) {
      if (settled || operation.status !== "started" || operation.fence !== fence) break;
      // Not overtaken: what comes with it was settled by hand in the meantime. Its own outcome counts all the same, or it
      // would be taken for abandoned, and tried again, for ever.
      ({ settled, operation } = await persistently(id, less));
    }
    at("S7.after");
    if (!settled) return { status: "overtaken", operation };
    if (outcome.status === "unknown") return { status: "unknown", operation };
    return { status: outcome.status === "success" ? "done" : "failed", operation, result };
  }

  return { settle, unknown };
}
