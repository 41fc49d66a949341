import { oneLine } from "../util/error-text.ts";
import { type DeferredRegistry, registerDeferredTool } from "./deferred-registry.ts";
import { defineTool } from "./define-tool.ts";
import { ownDescription } from "./describe-tool.ts";
import type { Tool } from "./tool.ts";

export const TOOL_SEARCH = "tool_search";
const MOST_FOUND = 10;

/** Whose search this is: activations belong to one session. */
export interface SearchingSession {
  readonly tenant: string;
  readonly sessionId: string;
}

/**
 * The tool with which a model finds deferred tools. It activates what it finds, and what it finds are the registry's own
 * tools with all their declarations. It is itself always loaded, or nobody could find it. `deferredOf` gives the deferred
 * registry of a session; undefined means there is none, and then nothing is found.
 */
export function createToolSearch(
  deferredOf: (session: SearchingSession) => DeferredRegistry | undefined,
): Tool {
  registerDeferredTool(TOOL_SEARCH);
  return defineTool({
    name: TOOL_SEARCH,
    description:
      "Finds tools that are not loaded yet and loads them. Search with a few words for what you want to do, " +
      "like: refund invoice. What it finds can be called from then on.",
    input: {
      type: "object",
      properties: {
        query: { type: "string", minLength: 1, maxLength: 500, description: "A few words." },
      },
      required: ["query"],
      additionalProperties: false,
    },
    safety: { effect: "read", concurrencySafe: true },
    permissionClass: "readonly",
    auditOperation: "read",
    execute({ input, tenant, sessionId, workingDirectory }) {
      const query = String(input["query"]);
      const deferred = deferredOf({ tenant, sessionId });
      const found = deferred?.search(query, { workingDirectory }) ?? [];
      const loaded = found.slice(0, MOST_FOUND);
      for (const tool of loaded) deferred?.activate(tool.name);
      const names = loaded.map((tool) => tool.name);
      return { text: answer(loaded, found.length, workingDirectory), data: { loaded: names } };
    },
  });
}

function answer(loaded: readonly Tool[], found: number, workingDirectory: string): string {
  if (loaded.length === 0) {
    return "No further tool fits. Try other or fewer words; tools that are already loaded are not listed here.";
  }
  const lines = loaded.map(
    (tool) => `- ${tool.name}: ${oneLine(ownDescription(tool, { workingDirectory }), 200)}`,
  );
  const rest = found - loaded.length;
  const more = rest > 0 ? [`${rest} more fit; search with more words to see them.`] : [];
  return ["These tools are loaded now and can be called:", ...lines, ...more].join("\n");
}

/**
 * What to answer when a deferred tool is called before it was loaded; undefined when the call may go on. With
 * `activate` the host loads it on the spot instead. The call passes the same gate either way.
 */
export function deferredCallProblem(
  deferred: DeferredRegistry,
  name: string,
  onDeferred: "refuse" | "activate" = "refuse",
): string | undefined {
  if (!deferred.isDeferred(name)) return undefined;
  if (onDeferred === "activate" && deferred.activate(name)) return undefined;
  return (
    `"${name}" was not called: it exists but is not loaded, so you have not seen its input schema. ` +
    `Call "${TOOL_SEARCH}" with a few words for what you want to do, then call it again.`
  );
}
