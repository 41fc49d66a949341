import { ownDescription } from "./describe-tool.ts";
import { metadataOf } from "./metadata.ts";
import type { Registry } from "./registry.ts";
import { saferFirst } from "./safety-level.ts";
import type { DescriptionContext, Tool } from "./tool.ts";

const DEFAULT_THRESHOLD = 15;
const LONGEST_QUERY = 500;

/** The names that every deferred registry of this process loads at once. */
const alwaysLoaded = new Set<string>();

/**
 * Despite its name, adds a tool's name to the GLOBAL always-load list, so that this tool is NOT deferred anywhere. The name
 * is the one the behaviours fix. Gives back the way to take it off again.
 */
export function registerDeferredTool(name: string): () => void {
  alwaysLoaded.add(name);
  return () => {
    alwaysLoaded.delete(name);
  };
}

/** Keeps a prompt short: of many tools the model sees a few, finds others by searching, and then has them too. */
export interface DeferredRegistry {
  readonly registry: Registry;
  readonly threshold: number;
  /** What the model is shown: all while there are few, else the always loaded and the activated ones. */
  active(): readonly Tool[];
  /** False when there is no such tool. */
  activate(name: string): boolean;
  /** Forgets all activations; for a new session. */
  reset(): void;
  /** True for a tool that is there and not active. */
  isDeferred(name: string): boolean;
  /** Deferred tools whose name, description or search hint have all words of the query; safer ones first. */
  search(query: string, context?: DescriptionContext): readonly Tool[];
  /** For this instance only; gives back the instance. */
  withAlwaysLoad(...names: readonly string[]): DeferredRegistry;
}

/** A threshold of zero or less means 15. */
export function createDeferredRegistry(registry: Registry, threshold = 0): DeferredRegistry {
  const limit = threshold > 0 ? threshold : DEFAULT_THRESHOLD;
  const ownAlwaysLoaded = new Set<string>();
  // By the tool itself: another one that later comes under the same name was not asked for.
  const activated = new Set<Tool>();

  function isActive(tool: Tool): boolean {
    if (registry.count() <= limit || activated.has(tool)) return true;
    const names = [tool.name, ...metadataOf(tool).aliases];
    return names.some((name) => alwaysLoaded.has(name) || ownAlwaysLoaded.has(name));
  }

  const deferred: DeferredRegistry = {
    registry,
    threshold: limit,
    active: () => registry.all().filter(isActive),
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

/** Who searches for a name wants that tool, however safe the others are. */
function namedFirst(tools: readonly Tool[], words: readonly string[]): readonly Tool[] {
  const rank = (tool: Tool) => (hasAll(tool.name.toLowerCase(), words) ? 0 : 1);
  return tools.toSorted((a, b) => rank(a) - rank(b));
}
