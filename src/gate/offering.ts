// Which tools an agent is offered: all of them, or above a threshold a few and a search for the others. Every surface shows this
// list: sessions, HTTP, the flow.

import type { TenantStore } from "../store/store.ts";
import {
  createDeferredRegistry,
  createToolSearch,
  type DeferredRegistry,
  deferredCallProblem,
  searchAndLoad,
} from "../tools/deferred-registry.ts";
import {
  describeTool,
  inputSchemaForModel,
  type Registry,
  TOOL_SEARCH,
} from "../tools/registry.ts";
import {
  type SafetyLevel,
  saferFirst,
  safetyLevelOf,
  safetyWarning,
  type Tool,
} from "../tools/tool.ts";
import { definedFields } from "../util/defined-fields.ts";
import type { JsonObject } from "../util/json.ts";
import type { GateOptions } from "./options.ts";

/** A tool as an agent is offered it. */
export interface ToolOffer {
  readonly name: string;
  /** With the hints for what the gate asks of the agent. */
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly safetyLevel: SafetyLevel;
  /** Set for a tool that can be neither tried nor undone. */
  readonly warning?: string;
}

export interface Offering {
  /** What a session is offered, safer tools first; without one, what a new session would be. */
  offered(sessionId: string, workingDirectory?: string): Promise<readonly ToolOffer[]>;
  /** Every tool, safer ones first. */
  all(): readonly ToolOffer[];
  /** Why a session cannot call this tool yet; undefined when it can. */
  whyNotLoaded(sessionId: string, tool: Tool): Promise<string | undefined>;
}

const MOST_SESSIONS = 10_000;
/** Searches of one session that are looked up after a restart. */
const MOST_SEARCHES = 1_000;

export function offeringOf(
  registry: Registry,
  { deferredTools, confidenceKey }: Pick<GateOptions, "deferredTools" | "confidenceKey">,
  store: Pick<TenantStore, "operations">,
): Offering {
  const show = (tool: Tool, workingDirectory: string): ToolOffer => {
    const options = definedFields({ confidenceKey, context: { workingDirectory } });
    return {
      name: tool.name,
      description: describeTool(tool, options),
      inputSchema: inputSchemaForModel(tool, options),
      safetyLevel: safetyLevelOf(tool),
      ...definedFields({ warning: safetyWarning(tool)?.message }),
    };
  };
  const shown = (tools: readonly Tool[], workingDirectory = "") =>
    saferFirst(tools.filter(({ undoOnly }) => undoOnly !== true)).map((tool) =>
      show(tool, workingDirectory),
    );
  const all = () => saferFirst(registry.all()).map((tool) => show(tool, ""));
  if (deferredTools === undefined) {
    return {
      all,
      offered: async (_, workingDirectory) => shown(registry.all(), workingDirectory),
      whyNotLoaded: async () => undefined,
    };
  }
  const { threshold = 0, alwaysLoad = [], whenCalled = "refuse" } = deferredTools;
  const loaded = new Map<string, DeferredRegistry>();
  const fresh = () => createDeferredRegistry(registry, threshold).withAlwaysLoad(...alwaysLoad);

  function ofSession(sessionId: string): DeferredRegistry {
    const known = loaded.get(sessionId) ?? fresh();
    if (loaded.size >= MOST_SESSIONS) loaded.clear();
    loaded.set(sessionId, known);
    return known;
  }

  /** What a session has loaded follows from its searches, so another process, or this one after a restart, knows it too. */
  async function loadAgain(sessionId: string): Promise<DeferredRegistry> {
    const known = loaded.get(sessionId);
    if (known !== undefined || sessionId === "") return known ?? fresh();
    const { operations } = await store.operations.listNewest(sessionId, { limit: MOST_SEARCHES });
    const deferred = ofSession(sessionId);
    for (const { tool, input, status } of operations.toReversed()) {
      if (tool !== TOOL_SEARCH || status !== "success") continue;
      searchAndLoad(deferred, String(JSON.parse(input)["query"]));
    }
    return deferred;
  }

  registry.register(createToolSearch(({ sessionId }) => ofSession(sessionId)));
  return {
    all,
    offered: async (sessionId, workingDirectory) =>
      shown((await loadAgain(sessionId)).active(), workingDirectory),
    async whyNotLoaded(sessionId, tool) {
      const deferred = await loadAgain(sessionId);
      return deferredCallProblem(deferred, tool.name, whenCalled);
    },
  };
}
