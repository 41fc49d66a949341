import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import { nameProblem } from "./registry.ts";
import { isDryRunnable, isReversible } from "./safety.ts";
import type { DryRun, Tool, ToolCall, ToolResult } from "./tool.ts";

/** How to undo one call. Rollback dispatches by `tool` and `input`; the description is for people. */
export interface UndoRecord {
  /** Empty when irreversible. */
  readonly tool: string;
  readonly input: JsonValue;
  readonly description: string;
  readonly irreversible: boolean;
  /** What a person can do manually; shown instead of dispatching an irreversible call. */
  readonly manualGuide: string;
}

/**
 * The short form for tool authors: the call that undoes this one, or the statement that there is none. Data, not a
 * function, because a rollback may come after a restart and passes the gate like any call.
 */
export type UndoRecipe =
  | {
      readonly tool: string;
      readonly input: JsonValue;
      readonly description?: string;
      readonly irreversible?: false;
      readonly manualGuide?: string;
    }
  | {
      readonly irreversible: true;
      readonly manualGuide: string;
      readonly description?: string;
      readonly tool?: string;
      readonly input?: JsonValue;
    };

export type UndoReading =
  | { readonly ok: true; readonly undo: UndoRecord }
  | { readonly ok: false; readonly problem: string };

/** Completes a tool's undo record, or returns the problem with it. Never throws. */
export function readUndo(given: unknown): UndoReading {
  if (typeof given !== "object" || given === null) return bad("it is not an object");
  const all = {
    tool: "",
    input: null,
    description: "",
    irreversible: false,
    manualGuide: "",
    ...given,
  };
  if (typeof all.irreversible !== "boolean") return bad("irreversible is not true or false");
  if (typeof all.description !== "string") return bad("the description is not a text");
  if (typeof all.manualGuide !== "string") return bad("the manual guide is not a text");
  const { description, irreversible, manualGuide } = all;
  // An irreversible call has nothing to dispatch, so nothing is kept that could be dispatched by mistake.
  if (irreversible) {
    return { ok: true, undo: { tool: "", input: null, description, irreversible, manualGuide } };
  }
  if (nameProblem(all.tool) !== undefined) return bad("it names no tool");
  try {
    canonicalJson(all.input);
  } catch (error) {
    return bad(`its input cannot be kept: ${errorText(error)}`);
  }
  const { tool, input } = all;
  return { ok: true, undo: { tool, input, description, irreversible, manualGuide } };
}

function bad(problem: string): UndoReading {
  return { ok: false, problem };
}

export interface MadeUndo {
  /** Undefined when there is no undo: the call changed nothing, the tool has none, or the record was lost. */
  readonly undo?: UndoRecord;
  /** Why an expected undo record is missing; for the operation log and the person who requests a rollback. */
  readonly lost?: string;
}

/**
 * The undo record of a call that has just ended: the tool's own, otherwise the result of `generateUndo`. The capability
 * is never read; it is for display. A failed call changed nothing unless its result contains an undo record. Never
 * throws: the call succeeded even if its undo record could not be created; the loss is reported instead.
 */
export async function makeUndo(tool: Tool, call: ToolCall, result: ToolResult): Promise<MadeUndo> {
  if (result.isError === true && result.undo === undefined) return {};
  try {
    const given =
      result.undo ?? (isReversible(tool) ? await tool.generateUndo(call, result) : undefined);
    if (given === undefined && !isReversible(tool)) return {};
    const reading = readUndo(given);
    return reading.ok ? { undo: reading.undo } : lostUndo(tool, reading.problem);
  } catch (error) {
    return lostUndo(tool, errorText(error));
  }
}

/** False when there is nothing to undo. */
export function mayHaveUndo(tool: Tool, result: ToolResult): boolean {
  return result.undo !== undefined || (isReversible(tool) && result.isError !== true);
}

export function lostUndo(tool: Tool, problem: string): MadeUndo {
  const lost =
    `"${tool.name}" was executed, but no way to undo it could be recorded: ${problem}. ` +
    "It counts as irreversible; a rollback will list it for a person.";
  return { lost };
}

/**
 * Asks a tool what a call would do. For previews: needs no approval and starts no execution. The tool gets neither
 * idempotency key nor fence, so that it cannot mistake this for an attempt. Undefined without a dry run; errors of the
 * dry run are rethrown.
 */
export async function previewCall(tool: Tool, call: ToolCall): Promise<DryRun | undefined> {
  if (!isDryRunnable(tool)) return undefined;
  return tool.dryRun({ ...call, context: { ...call.context, idempotencyKey: "", fence: 0 } });
}
