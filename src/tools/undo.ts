import type { JsonValue } from "../util/json.ts";

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
