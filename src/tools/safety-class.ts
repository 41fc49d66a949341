import { metadataOf } from "./metadata.ts";
import { isReversible } from "./safety-level.ts";
import type { Tool } from "./tool.ts";

/** How much is at stake, least first. The highest class anywhere in a chain of calls decides for the whole chain. */
export const SAFETY_CLASSES = ["read", "reversible", "irreversible"] as const;
export type SafetyClass = (typeof SAFETY_CLASSES)[number];

/**
 * From what the tool implements and from its permission class, which alone selects the check. The informational flags
 * (`readOnly`, `effect`) are not read: whoever knows nothing better is irreversible (T12).
 */
export function safetyClassOf(tool: Tool): SafetyClass {
  if (metadataOf(tool).permissionClass === "readonly") return "read";
  return isReversible(tool) ? "reversible" : "irreversible";
}

/** Of an empty chain nothing is known, so it counts as irreversible. */
export function highestClass(classes: readonly SafetyClass[]): SafetyClass {
  if (classes.length === 0) return "irreversible";
  const rank = (name: SafetyClass) => SAFETY_CLASSES.indexOf(name);
  return classes.reduce((highest, name) => (rank(name) > rank(highest) ? name : highest));
}
