// What a rollback would do, without doing it: the same plan as `rollback`, with what each undo would change as things are now.

import type { Operation, OperationId } from "../model/operation.ts";
import { presentedBy } from "../tools/presented.ts";
import { previewCall } from "../tools/tool-call.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import type { GateContext } from "./context.ts";
import { targetChangedSince } from "./order.ts";
import { operationsIn, planRollback, type RollbackScope } from "./rollback.ts";
import { whileLooking } from "./show.ts";

/**
 * - `ready`: would be undone.
 * - `changed`: its target was changed since, so it would be left alone.
 * - `unfinished`: its own outcome, or that of a call it rests on, is not known yet.
 * - `irreversible`: no call undoes it; `guide` says what a person can do.
 * - `settled`: nothing to do.
 */
export type PlannedUndoState = "ready" | "changed" | "unfinished" | "irreversible" | "settled";

export interface PlannedUndo {
  readonly operationId: OperationId;
  readonly tool: string;
  /** What was done, as its tool says it; empty when it says nothing. */
  readonly title: string;
  readonly input: JsonValue;
  readonly state: PlannedUndoState;
  /** Why it would not be undone; empty when it would be. */
  readonly reason: string;
  readonly guide: string;
  /** The undoing call; empty when there is none. */
  readonly undoTool: string;
  readonly undoInput: JsonValue;
  readonly undoTitle: string;
  /** What a dry run of the undoing call says now; null when it has none. */
  readonly dryRun: JsonValue;
}

/** Every operation that a rollback of this scope would report, newest first. Reads only. */
export async function rollbackPlan(
  context: GateContext,
  scope: RollbackScope,
): Promise<readonly PlannedUndo[]> {
  const own = await operationsIn(context.store.operations, scope);
  const plan = planRollback(own);
  const lines: PlannedUndo[] = [];
  /** Versions that the undos so far would leave. */
  const left = new Set<string>();
  // One after the other: each asks the world, and a run may have many.
  for (const step of plan) {
    const { operation } = step;
    if (step.action === "list") {
      const { outcome, reason } = step.finding;
      const open = outcome === "unfinished" || outcome === "irreversible" ? outcome : "settled";
      lines.push({ ...lineOf(context, operation), state: open, reason });
      continue;
    }
    // The undo of a newer call of this run brings the target back to what this one left.
    const isNext = operation.stateVersion !== "" && left.has(operation.stateVersion);
    const changed = isNext ? undefined : await targetChangedSince(context, operation);
    if (changed === undefined) left.add(step.undo.versionBefore ?? "");
    const dryRun = await dryRunOf(context, operation);
    const state = changed === undefined ? "ready" : "changed";
    lines.push({ ...lineOf(context, operation), state, reason: changed ?? "", dryRun });
  }
  return lines;
}

function lineOf(context: GateContext, operation: Operation): Omit<PlannedUndo, "state" | "reason"> {
  const { undo } = operation;
  const hasCall = undo !== undefined && !undo.irreversible && undo.tool !== "";
  return {
    operationId: operation.id,
    tool: operation.tool,
    title: titleOf(context, operation.tool, parsed(operation.input)),
    input: parsed(operation.input) ?? operation.input,
    guide: hasCall ? "" : (undo?.manualGuide ?? ""),
    undoTool: hasCall ? undo.tool : "",
    undoInput: hasCall ? undo.input : null,
    undoTitle: hasCall ? undo.description || titleOf(context, undo.tool, undo.input) : "",
    dryRun: null,
  };
}

/** The sentence of a tool about an input; empty when there is none. */
function titleOf(
  { registry }: Pick<GateContext, "registry">,
  name: string,
  input: JsonValue | undefined,
): string {
  const tool = registry.get(name);
  if (tool === undefined || input === undefined) return "";
  const title = presentedBy(tool, input)?.["title"];
  return typeof title === "string" ? title : "";
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

async function dryRunOf(
  context: GateContext,
  { sessionId, callId, undo, workingDirectory }: Operation,
): Promise<JsonValue> {
  const tool = undo === undefined ? undefined : context.registry.get(undo.tool);
  if (tool === undefined || undo === undefined) return null;
  const facts = { sessionId, callId, input: undo.input, workingDirectory, places: undefined };
  try {
    const seen = await whileLooking(context, facts, (call) => previewCall(tool, call));
    return seen === undefined ? null : { ...seen };
  } catch (error) {
    return { unavailable: errorText(error) };
  }
}
