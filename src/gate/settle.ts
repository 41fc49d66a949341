import type { CallAnswer } from "../model/call.ts";
import { isSallyportError, SallyportError } from "../model/errors.ts";
import type { Interaction, InteractionDraft, InteractionId } from "../model/interaction.ts";
import type { Operation, RecordedUndo } from "../model/operation.ts";
import type { Along, Conditions } from "../store/engine.ts";
import { closingStep, openingOf, whyClosed } from "../store/interaction-rows.ts";
import { LOST_MS } from "../store/left-behind.ts";
import type { OperationStore, Outcome, Settlement } from "../store/operations.ts";
import {
  type ProcessedResult,
  processResult,
  type ResultProcessor,
} from "../tools/result-processor.ts";
import { metadataOf } from "../tools/safety.ts";
import type { ToolResult } from "../tools/tool.ts";
import { lostUndo, type MadeUndo, makeUndo, mayHaveUndo } from "../tools/undo.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonValue } from "../util/json.ts";
import { answerOf, recorded } from "./answers.ts";
import {
  type AttemptOptions,
  callOf,
  type Looked,
  type TargetLooks,
  underLease,
} from "./attempt.ts";
import type { GateContext } from "./context.ts";
import type { Executed, FoundUndo, Order } from "./execute.ts";
import type { FoundOut, PersonsAnswer } from "./inbox.ts";
import { pastFirstWrite } from "./propose.ts";
import { carryOn, orderOf } from "./recover.ts";

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

/** A lost connection is a question, not an error: it is opened in the transaction that records the outcome as unknown. */
function lostQuestion(order: Order, { id, attempt }: Operation, reason: string): Along {
  const { sessionId, callId, actor, chain = [actor], undoOf = "" } = order;
  const facts = { id, attempt, sessionId, callId, chain, undoOf, tool: order.tool.name };
  return lostFrom({ ...facts, input: canonicalJson(order.input) }, reason, actor);
}

/** The same from what is stored of it, for whoever has not the tool. */
export function lostFrom(
  operation: Pick<
    Operation,
    "id" | "attempt" | "tool" | "input" | "sessionId" | "callId" | "chain" | "undoOf"
  >,
  reason: string,
  actor: string,
): Along {
  const { id, attempt, tool, input: args_json, sessionId, callId, undoOf } = operation;
  // Who asked for a rollback may say what became of it: an undo is not what they stand to gain from, and in a team of one
  // nobody else could. Those who asked for the call that is undone may not.
  const chain = undoOf === "" ? operation.chain : operation.chain.slice(1);
  const draft: InteractionDraft = {
    type: "connection_lost",
    sessionId,
    callId,
    displayText: `It is not known whether ${tool} happened: ${reason}. Look, and say what you found.`,
    hash: sha256Hex(canonicalJson({ v: 1, operation: id, attempt, tool, args_json })),
    chain,
    operationId: id,
    deadlineMs: LOST_MS,
    pendingTool: { tool_name: tool, args_json, summary: reason.toWellFormed() },
  };
  return openingOf(lostId(id, attempt), draft, actor);
}

/** One question per attempt: when it is tried once more and is lost again, that is another question. */
export function lostId(operationId: string, attempt: number): InteractionId {
  return `${operationId}.lost-${attempt}`;
}

/**
 * A person found out what became of a call. The answer and the outcome are one transaction, so that nothing is repeated on
 * an answer that was not recorded; the decision behind it goes on from there.
 */
export async function settleLost(
  question: Interaction,
  found: PersonsAnswer & FoundOut,
  context: GateContext,
): Promise<CallAnswer> {
  const { store } = context;
  const { id, operationId } = question;
  const { by, hash, reason = "" } = found;
  const operation = await store.operations.get(operationId);
  const answer = found.happened ? "happened" : found.otherwise;
  const closing = closingStep(
    id,
    { outcome: "answered", by, reason, answer },
    // Handed to somebody else since we looked: then it is theirs. However late it is, what was found out counts.
    { hash, assigned_to: question.assignedTo, ...stillAsked(question) },
  );
  if (isAsked(question) && !found.happened && found.otherwise === "repeat") {
    // Lost again, it is asked about anew, and those who asked for the call are still not the ones to answer.
    const chain = operation.undoOf === "" ? question.chain : operation.chain;
    const order = { ...(await repeatable(question, context)), chain, actor: by };
    const executed = await context.executor.repeat(order, operation, [closing]);
    if (executed.status === "overtaken") throw await overtaken(question, context);
    const done = answerOf(executed);
    if (done.answer === "unknown") return done;
    return pastFirstWrite(id, SETTLED, async () => {
      await goOn(operation.decisionId, context);
      return done;
    });
  }
  const { fence, undoOf } = operation;
  const outcome = outcomeOf(found, by, await foundUndo(operation, found, context));
  const settled = await store.operations.settle(operationId, {
    fence,
    outcome,
    actor: by,
    along: [closing],
    // A compensation that happened has taken back what it was for, whoever says so.
    ...(found.happened && undoOf !== "" ? { tookBack: undoOf } : {}),
  });
  if (!settled.settled) throw await overtaken(question, context);
  return pastFirstWrite(id, SETTLED, async () => {
    await goOn(operation.decisionId, context);
    return recorded(await store.operations.get(operationId));
  });
}

/** Undefined when nobody gave anything to make one from. */
async function foundUndo(
  operation: Operation,
  found: FoundOut,
  { deciding, executor }: GateContext,
): Promise<FoundUndo | undefined> {
  if (!found.happened || found.resultData === undefined) return undefined;
  const made = operation.undoOf === "" ? await make(found.resultData) : "Nothing undoes an undo.";
  if (typeof made !== "string") return made;
  const hint = `No undo can be made from it: ${made} Leave it out to say only that it happened.`;
  throw new SallyportError("invalid_input", { what: "resultData", id: operation.id, hint });

  async function make(data: JsonValue): Promise<FoundUndo | string> {
    try {
      return await executor.undoFrom(await orderOf(operation, deciding), operation, data);
    } catch (error) {
      if (isSallyportError(error)) throw error;
      return `${errorText(error)}.`;
    }
  }
}

/** Questions from before lost calls stayed open may have expired; nobody has found out since. */
function isAsked({ status, outcome }: Interaction): boolean {
  return status === "open" || outcome === "expired";
}

function stillAsked({ outcome }: Interaction): Conditions {
  return outcome === "expired" ? { status: "canceled", outcome } : { status: "open" };
}

/** Where its tool is gone, or the gate refuses it by now, it cannot be called again; what was found out can still be said. */
async function repeatable({ id, operationId }: Interaction, { store, deciding }: GateContext) {
  try {
    return await orderOf(await store.operations.get(operationId), deciding);
  } catch (error) {
    if (isSallyportError(error)) throw error;
    const hint = `It cannot be repeated here: ${errorText(error)}. Say whether it happened.`;
    throw new SallyportError("illegal_transition", { id, hint }, error);
  }
}

/** What a person says replaces what the tool could not. */
function outcomeOf(found: FoundOut, by: string, way: FoundUndo | undefined): Outcome {
  if (!found.happened) {
    const error = `It did not happen: ${by} looked.`;
    return { status: "failed", error, output: error };
  }
  return {
    status: "success",
    output: found.output ?? `It happened: ${by} looked.`,
    truncated: false,
    storedPath: "",
    undo: way?.undo,
    stateVersion: way?.stateVersion ?? "",
  };
}

async function goOn(decisionId: string, { store, deciding }: GateContext): Promise<void> {
  if (decisionId === "") return;
  const decision = await store.decisions.get(decisionId);
  if (decision.state === "approved") await carryOn(decision, deciding);
}

const SETTLED =
  "What you found out is stored. The next recovery goes on with the decision behind it.";

/** The question as it is now says who was first, or that another hash was seen. */
async function overtaken({ id }: Interaction, { store }: GateContext): Promise<unknown> {
  const now = await store.interactions.get(id);
  if (now.status !== "open") return whyClosed(now);
  const hint = "Look at it again: what you saw is not what is stored, or everything is stopped.";
  return new SallyportError("approval_void", { id, hint });
}
