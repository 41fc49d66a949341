import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import type { JsonValue } from "../util/json.ts";
import { nameProblem } from "./tool-name.ts";

/** How to take one call back. Rollback dispatches by `tool` and `input`; the description is for people. */
export interface UndoRecord {
  /** Empty when irreversible. */
  readonly tool: string;
  readonly input: JsonValue;
  readonly description: string;
  readonly irreversible: boolean;
  /** What a person can do by hand; shown instead of dispatching what is irreversible. */
  readonly manualGuide: string;
}

/**
 * The same as a tool's author writes it: the call that takes this one back, or the statement that there is none. It is
 * data and not a function, because a rollback may come after a restart, and goes through the gate like any call.
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

/** Makes a whole record of what a tool gave, or says what is wrong with it. Never throws. */
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
  // What cannot be undone has nothing to dispatch, so nothing is kept that somebody could dispatch by mistake.
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
