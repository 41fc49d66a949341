import { oneLine } from "../util/error-text.ts";
import { defineTool } from "./define-tool.ts";
import type { Registry } from "./registry.ts";
import { ownDescription, TOOL_SEARCH } from "./registry.ts";
import type { DescriptionContext, Tool } from "./tool.ts";
import { metadataOf, saferFirst } from "./tool.ts";

const DEFAULT_THRESHOLD = 15;
const LONGEST_QUERY = 500;

/** The names that every deferred registry of this process always loads. */
const alwaysLoaded = new Set<string>();

/**
 * Despite its name, adds a tool's name to the GLOBAL always-load list, so that this tool is NOT deferred anywhere. The
 * name is fixed (S2-75). Returns a function that removes it again.
 */
export function registerDeferredTool(name: string): () => void {
  alwaysLoaded.add(name);
  return () => {
    alwaysLoaded.delete(name);
  };
}

/** Keeps a prompt short: the model sees a few of many tools, finds others by searching, and then has them too. */
export interface DeferredRegistry {
  readonly registry: Registry;
  readonly threshold: number;
  /** The tools shown to the model: all while there are few, otherwise the always-loaded and the activated ones. */
  active(): readonly Tool[];
  /** False when there is no such tool. */
  activate(name: string): boolean;
  /** Drops all activations, for a new session. */
  reset(): void;
  /** True for a tool that exists and is not active. */
  isDeferred(name: string): boolean;
  /** Deferred tools whose name, description or search hint contain all words of the query; safer ones first. */
  search(query: string, context?: DescriptionContext): readonly Tool[];
  /** For this instance only; returns the instance. */
  withAlwaysLoad(...names: readonly string[]): DeferredRegistry;
}

/** A threshold of zero or less means 15. */
export function createDeferredRegistry(registry: Registry, threshold = 0): DeferredRegistry {
  const limit = threshold > 0 ? threshold : DEFAULT_THRESHOLD;
  const ownAlwaysLoaded = new Set<string>();
  // By identity: a different tool registered later under the same name was not activated.
  const activated = new Set<Tool>();

  function isActive(tool: Tool): boolean {
    if (registry.count() <= limit || activated.has(tool)) return true;
    const names = [tool.name, ...metadataOf(tool).aliases];
    return names.some((name) => alwaysLoaded.has(name) || ownAlwaysLoaded.has(name));
  }

  const deferred: DeferredRegistry = {
    registry,
    threshold: limit,
    active: () => registry.all().filter((tool) => tool.undoOnly !== true && isActive(tool)),
    activate(name) {
      const tool = registry.get(name);
      if (tool !== undefined) activated.add(tool);
      return tool !== undefined;
    },
    reset: () => activated.clear(),
    isDeferred(name) {
      const tool = registry.get(name);
      return tool !== undefined && !isActive(tool);
    },
    search(query, context) {
      const words = query.slice(0, LONGEST_QUERY).toLowerCase().split(/\s+/).filter(Boolean);
      if (words.length === 0) return [];
      const found = registry
        .all()
        .filter(({ undoOnly }) => undoOnly !== true)
        .filter((tool) => !isActive(tool) && hasAll(searchText(tool, context), words));
      return namedFirst(saferFirst(found), words);
    },
    withAlwaysLoad(...names) {
      for (const name of names) ownAlwaysLoaded.add(name);
      return deferred;
    },
  };
  return deferred;
}

function searchText(tool: Tool, context: DescriptionContext | undefined): string {
  const { searchHint } = metadataOf(tool);
  return `${tool.name}\n${ownDescription(tool, context)}\n${searchHint}`.toLowerCase();
}

function hasAll(text: string, words: readonly string[]): boolean {
  return words.every((word) => text.includes(word));
}

/** A search for an exact name returns that tool first, however safe the others are. */
function namedFirst(tools: readonly Tool[], words: readonly string[]): readonly Tool[] {
  const rank = (tool: Tool) => (hasAll(tool.name.toLowerCase(), words) ? 0 : 1);
  return tools.toSorted((a, b) => rank(a) - rank(b));
}

const MOST_FOUND = 10;

/** The owner of a search: activations belong to one session. */
export interface SearchingSession {
  readonly tenant: string;
  readonly sessionId: string;
}

/**
 * The tool with which a model finds deferred tools. It activates its results, which are the registry's own tools with
 * all their declarations. It is always loaded, otherwise it could not be found. `deferredOf` returns the deferred
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
      const { loaded, found } = searchAndLoad(deferred, query, workingDirectory);
      const names = loaded.map((tool) => tool.name);
      return { text: answer(loaded, found, workingDirectory), data: { loaded: names } };
    },
  });
}

/** Loads the first tools that a query finds. */
export function searchAndLoad(
  deferred: DeferredRegistry | undefined,
  query: string,
  workingDirectory = "",
): { readonly loaded: readonly Tool[]; readonly found: number } {
  const found = deferred?.search(query, { workingDirectory }) ?? [];
  const loaded = found.slice(0, MOST_FOUND);
  for (const tool of loaded) deferred?.activate(tool.name);
  return { loaded, found: found.length };
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
 * The answer to a call of a deferred tool that is not loaded; undefined when the call may proceed. With `activate` the
 * host loads it immediately instead. The call passes the same gate either way.
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
