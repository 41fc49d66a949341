import { type DefinitionChange, definitionDifference } from "../tools/definition-difference.ts";
import { definitionHash, definitionOf } from "../tools/definition-hash.ts";
import type { Registry } from "../tools/registry.ts";
import type { Tool } from "../tools/tool.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import type { JsonObject } from "../util/json.ts";
import type { PlannedCall } from "./action.ts";

/** How the tool that is here now relates to the one that a pending call was shown with. */
export type Pinned =
  | { readonly fits: true; readonly tool: Tool; readonly definition: string }
  | { readonly fits: false; readonly why: string };

/**
 * What is pending outlives deploys. The same definition goes on. Another one goes on only when its author has declared that
 * it continues that version, nothing but wording and the input's schema was changed, and it reads this very input as
 * before. Everything else was part of what a person agreed to, and goes back to review.
 */
export function pinnedTool(
  call: PlannedCall,
  shown: JsonObject | undefined,
  registry: Registry,
): Pinned {
  const tool = registry.get(call.tool);
  if (tool === undefined) return { fits: false, why: `The tool "${call.tool}" is gone.` };
  const definition = definitionHash(tool);
  if (definition === call.definition) return { fits: true, tool, definition };
  const changes = shown === undefined ? [] : definitionDifference(shown, definitionOf(tool));
  const declared = tool.continues?.includes(String(shown?.["version"])) ?? false;
  const harmless = changes.length > 0 && changes.every(({ path }) => MAY_CHANGE.test(path));
  if (declared && harmless && readsAlike(tool, call)) return { fits: true, tool, definition };
  return { fits: false, why: `The tool "${call.tool}" was changed: ${describe(changes)}` };
}

/** Wording and the shape of the input; never what the tool does, reaches or promises. */
const MAY_CHANGE = /^(version|description|inputSchema(\..*)?|metadata\.searchHint)$/;

function readsAlike(tool: Tool, { input }: PlannedCall): boolean {
  const parsed = tool.parseInput(input);
  return parsed.ok && canonicalJson(parsed.value) === canonicalJson(input);
}

function describe(changes: readonly DefinitionChange[]): string {
  if (changes.length === 0) return "what it was before is not known.";
  return changes
    .map(({ path, before, after }) => `${path} was ${before || "not there"}, is ${after || "gone"}`)
    .join("; ")
    .concat(".");
}
