import { canonicalJson } from "../util/canonical-json.ts";
import { capabilityProblem } from "./capability.ts";
import { metadataProblem } from "./metadata.ts";
import type { Tool } from "./tool.ts";
import { nameProblem } from "./tool-name.ts";

const OPTIONAL_FUNCTIONS = [
  "dryRun",
  "generateUndo",
  "probe",
  "stateVersion",
  "resources",
] as const;

/** What keeps a value from being used as a tool, as a sentence; undefined when nothing does. It may come from anywhere. */
export function toolProblem(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return "There is no tool.";
  const tool = value as Partial<Tool>;
  return (
    nameProblem(tool.name) ??
    contractProblem(tool) ??
    metadataProblem(tool.metadata) ??
    capabilityProblem(tool.capability) ??
    aliasProblem(tool)
  );
}

function contractProblem(tool: Partial<Tool>): string | undefined {
  for (const name of ["description", "parseInput", "execute"] as const) {
    if (typeof tool[name] !== "function") return `A tool needs the function ${name}.`;
  }
  for (const name of OPTIONAL_FUNCTIONS) {
    // A claim that is no function would count as implemented here and fail there.
    if (tool[name] !== undefined && typeof tool[name] !== "function")
      return `${name} must be a function.`;
  }
  if (typeof tool.inputSchema !== "object" || tool.inputSchema === null)
    return "A tool needs an inputSchema.";
  try {
    canonicalJson(tool.inputSchema);
  } catch {
    return "inputSchema must be plain JSON.";
  }
  return undefined;
}

function aliasProblem(tool: Partial<Tool>): string | undefined {
  const aliases = tool.metadata?.aliases ?? [];
  if (new Set([tool.name, ...aliases]).size <= aliases.length)
    return "A tool's aliases differ from its name and each other.";
  return aliases.map((alias) => nameProblem(alias)).find((problem) => problem !== undefined);
}
