// Step "settle": records the outcome of an attempt with its undo record and the decision's last move, if the fence is still
// ours; or records it as unknown and asks a person. Before it: attempt. After it: undo, if it is rolled back.

import { isSallyportError } from "../model/errors.ts";
import { type InteractionDraft, lostId } from "../model/interaction.ts";
import type { Operation, RecordedUndo } from "../model/operation.ts";
import type { Along } from "../store/engine.ts";
import { LOST_MS, openingOf } from "../store/interactions.ts";
import type { OperationStore, Outcome, Settlement } from "../store/operations.ts";
import { pictureStep } from "../store/tenant-engine.ts";
import { definitionHash } from "../tools/registry.ts";
import { metadataOf, type ToolResult } from "../tools/tool.ts";
import {
  lostUndo,
  type MadeUndo,
  makeUndo,
  mayHaveUndo,
  type ProcessedResult,
  processResult,
} from "../tools/tool-call.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonValue } from "../util/json.ts";
import { inTime, type Stop } from "../util/timers.ts";
import type { ExecutionContext } from "./context.ts";
import { imageIn } from "./image-result.ts";
import {
  callOf,
  type Executed,
  type Looked,
  lookAfter,
  lookBroughtBack,
  type Order,
  underLease,
} from "./order.ts";

/** An order under way, and what was read right before it. */
export type Running = Order & Pick<Looked, "versionBefore" | "watched">;

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

/** The tool has answered: what it said, and how to undo it. */
export async function settle(
  context: ExecutionContext,
  order: Running,
  operation: Operation,
  result: ToolResult,
): Promise<Executed> {
  const { text, truncated, storedPath } = await shortened(context, order, operation, result.text);
  const { undo, lost, stateVersion } = await undoRecord(context, order, operation, result);
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
    return record(context, order, operation, outcome, shown);
  }
  const outcome: Outcome = {
    status: "success",
    output: lost === undefined ? text : `${text}\n${lost}`,
    truncated,
    storedPath,
    undo,
    stateVersion,
  };
  const whole = { ...shown, ...(undo === undefined ? {} : { undo }) };
  return record(context, order, operation, outcome, whole);
}

/** It is not known whether it happened. */
export function settleUnknown(
  context: ExecutionContext,
  order: Order,
  operation: Operation,
  error: string,
): Promise<Executed> {
  const result = { text: error, isError: true };
  return record(context, order, operation, { status: "unknown", error }, result);
}

/** A failed call gets an undo record only when it says itself how to undo what it did all the same. */
async function undoRecord(
  context: ExecutionContext,
  order: Running,
  operation: Operation,
  result: ToolResult,
): Promise<MadeUndo & { readonly stateVersion: string; readonly undo?: RecordedUndo }> {
  const { tool, undoOf, versionBefore } = order;
  const isFailed = result.isError === true;
  if (isFailed && (result.undo === undefined || metadataOf(tool).effect === "read")) {
    return { stateVersion: "" };
  }
  // An undo is not undone, so none is recorded for it.
  const isWanted = undoOf === undefined && mayHaveUndo(tool, result);
  const { undo: made, ...lost } = isWanted ? await undoFor(context, order, operation, result) : {};
  const { stateVersion, alsoChanged } = await lookAfter(context, order, operation);
  if (made === undefined) return { ...lost, stateVersion };
  const undo = {
    ...made,
    ...(versionBefore === "" ? {} : { versionBefore }),
    ...(alsoChanged.length === 0 ? {} : { alsoChanged }),
  };
  return { undo, stateVersion };
}

/** The processor may remove secrets from the output, so when it fails none of the output is shown. */
async function shortened(
  context: ExecutionContext,
  { sessionId, callId, tool: { name: tool } }: Order,
  operation: Operation,
  text: string,
): Promise<ProcessedResult> {
  const { processor, store } = context;
  const process = () =>
    processResult(processor, { tenant: store.tenant, sessionId, callId, tool }, text);
  if (processor === undefined) return process();
  try {
    return await underLease(context, operation, process);
  } catch (error) {
    const withheld = `[The output is withheld: it could not be looked through (${errorText(error)}).]`;
    return { text: withheld, truncated: false, storedPath: "" };
  }
}

/** The call succeeded even if its undo record could not be created. */
async function undoFor(
  context: ExecutionContext,
  order: Order,
  operation: Operation,
  result: ToolResult,
): Promise<MadeUndo> {
  const { tool } = order;
  try {
    return await underLease(context, operation, ({ signal }) =>
      makeUndo(tool, callOf(context, order, operation, signal), result),
    );
  } catch (error) {
    return lostUndo(tool, errorText(error));
  }
}

export interface FoundUndo {
  readonly undo: RecordedUndo;
  readonly stateVersion: string;
}

/**
 * The undo record of a call of which a person says that it happened, made by the tool from what they found, with the current
 * version of the target. A text is the reason why there is none.
 */
export async function undoFrom(
  context: ExecutionContext,
  order: Order,
  operation: Operation,
  data: JsonValue,
): Promise<FoundUndo | string> {
  const { tool } = order;
  const { timeoutMs, timers } = context;
  if (definitionHash(tool) !== order.definitionHash) return "The tool was changed since.";
  const result = { text: "", isError: false, data };
  const make = ({ signal }: Stop) =>
    makeUndo(tool, callOf(context, order, operation, signal), result);
  // No lease is held: no process takes over a call that waits for a person.
  const { undo, lost } = await inTime(make, timeoutMs, timers);
  if (undo === undefined) return lost ?? `"${tool.name}" has no undo.`;
  const { stateVersion } = await lookAfter(context, { ...order, versionBefore: "" }, operation);
  return { undo, stateVersion };
}

/**
 * The outcome is known only here, so one failed write must not lose it. Safe to repeat: the fence accepts it once, and a
 * second read finds what the first write stored although its answer was lost.
 */
async function persistently(
  { store: { operations }, timers, leaseMs }: ExecutionContext,
  id: string,
  settlement: Settlement,
): Promise<Settled> {
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
  context: ExecutionContext,
  order: Order,
  begun: Operation,
  outcome: Outcome,
  result: ToolResult,
): Promise<Executed> {
  const { at } = context;
  const { id, fence, sessionId } = begun;
  const closes = order.closes?.(outcome);
  const tookBack = outcome.status === "success" ? order.undoOf : undefined;
  const broughtBack = tookBack === undefined ? [] : await lookBroughtBack(context, order);
  const along = outcome.status === "unknown" ? [lostQuestion(order, begun, outcome.error)] : [];
  if (outcome.status === "success") along.push(...pictureFor(begun, result));
  const settlement = { fence, sessionId, outcome, actor: order.actor, along };
  at("S7.before");
  const brings = {
    ...settlement,
    ...(closes === undefined ? {} : { closes }),
    ...(tookBack === undefined ? {} : { tookBack }),
  };
  const whole = broughtBack.length === 0 ? brings : { ...brings, broughtBack };
  let { settled, operation } = await persistently(context, id, whole);
  for (const less of [brings, settlement]) {
    if (settled || operation.status !== "started" || operation.fence !== fence) break;
    // Not overtaken: the decision or the undone operation was settled by hand in the meantime. The outcome counts all the
    // same, or the operation would be taken for abandoned, and tried again, for ever.
    ({ settled, operation } = await persistently(context, id, less));
  }
  at("S7.after");
  if (!settled) return { status: "overtaken", operation };
  if (outcome.status === "unknown") return { status: "unknown", operation };
  return { status: outcome.status === "success" ? "done" : "failed", operation, result };
}

/** Whoever asked for a call that waited is not there to take its picture; one that ran at once has taken it. */
function pictureFor({ id, decisionId }: Operation, { data }: ToolResult): Along[] {
  const picture = decisionId === "" || data === undefined ? undefined : imageIn(data);
  return picture === undefined ? [] : [pictureStep(id, picture)];
}

/** A lost outcome is a question to a person: opened in the transaction that records the outcome as unknown. */
function lostQuestion(order: Order, { id, attempt }: Operation, reason: string): Along {
  const { sessionId, callId, actor, chain = [actor], undoOf = "" } = order;
  const facts = { id, attempt, sessionId, callId, chain, undoOf, tool: order.tool.name };
  return lostFrom({ ...facts, input: canonicalJson(order.input) }, reason, actor);
}

/** The same from the stored operation, for a process without the tool. */
export function lostFrom(
  operation: Pick<
    Operation,
    "id" | "attempt" | "tool" | "input" | "sessionId" | "callId" | "chain" | "undoOf"
  >,
  reason: string,
  actor: string,
): Along {
  const { id, attempt, tool, input: args_json, sessionId, callId, undoOf } = operation;
  // The person who asked for a rollback may answer about its undo: they do not gain from it, and in a team of one no one else
  // could. Those who asked for the call that is undone may not.
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
