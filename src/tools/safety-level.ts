import type { Finding } from "../model/finding.ts";
import type { SafetyLevel } from "./capability.ts";
import { metadataOf } from "./metadata.ts";
import type { Tool } from "./tool.ts";

/** By what the tool really implements; what it says in its capability makes no difference. */
export function isDryRunnable(tool: Tool): tool is Tool & Required<Pick<Tool, "dryRun">> {
  return typeof tool.dryRun === "function";
}

/** Takes part in rollback. True also for tools of level 2 that can do both. */
export function isReversible(tool: Tool): tool is Tool & Required<Pick<Tool, "generateUndo">> {
  return typeof tool.generateUndo === "function";
}

/** 2: can be tried before it is done. 1: can be taken back. 0: neither. */
export function safetyLevelOf(tool: Tool): SafetyLevel {
  if (isDryRunnable(tool)) return 2;
  return isReversible(tool) ? 1 : 0;
}

/** Given before a level-0 tool is called; undefined for the others. Written for the model as much as for people. */
export function safetyWarning(tool: Tool): Finding | undefined {
  if (safetyLevelOf(tool) > 0) return undefined;
  const { readOnly, destructive } = metadataOf(tool);
  const says = readOnly ? " It says of itself that it only reads." : "";
  const worse = destructive ? " It says of itself that it destroys data." : "";
  return {
    severity: "warning",
    policy: "safety-level",
    message:
      `"${tool.name}" can neither be tried before it is done nor be taken back.${says}${worse} ` +
      "Check the input once more, and prefer a tool with a dry run where one does the same.",
  };
}

/** Tools that can be tried first, then those that can be taken back, then the rest; otherwise the order stays. */
export function saferFirst<Item extends Tool>(tools: readonly Item[]): readonly Item[] {
  return tools.toSorted((a, b) => safetyLevelOf(b) - safetyLevelOf(a));
}
