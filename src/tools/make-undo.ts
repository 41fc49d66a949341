import { errorText } from "../util/error-text.ts";
import { isReversible } from "./safety-level.ts";
import type { Tool, ToolCall, ToolResult } from "./tool.ts";
import { readUndo, type UndoRecord } from "./undo.ts";

export interface MadeUndo {
  /** Undefined when there is no way back: the call changed nothing, the tool has none, or it was lost. */
  readonly undo?: UndoRecord;
  /** Why a way back that should be there is not; for the operation log and the person who asks for a rollback. */
  readonly lost?: string;
}

/**
 * The undo record of a call that has just ended: the tool's own, else what `generateUndo` makes of input and result. Only
 * those two are read, never the capability, which is for display. A failed call has changed nothing unless its result brings
 * an undo record of its own. Never throws: what was done is done, and a success must not look like a failure because the way
 * back is missing; the loss is told instead.
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

/** False when there is nothing to ask for. */
export function mayHaveUndo(tool: Tool, result: ToolResult): boolean {
  return result.undo !== undefined || (isReversible(tool) && result.isError !== true);
}

export function lostUndo(tool: Tool, problem: string): MadeUndo {
  const lost =
    `"${tool.name}" was executed, but no way to undo it could be recorded: ${problem}. ` +
    "It counts as irreversible; a rollback will list it for a person.";
  return { lost };
}
