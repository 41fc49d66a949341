import { SallyportError } from "../model/errors.ts";
import { toolProblem } from "./check-tool.ts";
import { type ExternalOrigin, externalTool } from "./external-tool.ts";
import { lookAlikeProblem, type TakenName } from "./look-alikes.ts";
import { metadataOf, NO_METADATA, type ToolMetadata } from "./metadata.ts";
import type { Tool } from "./tool.ts";

/** All tools of every origin. Shape: pulled; changes are pushed to listeners while `register` or `unregister` runs. */
export interface Registry {
  /** Throws invalid_input for no tool, a bad or taken name, or one that looks like a taken one. Never replaces. */
  register(tool: Tool, origin?: ExternalOrigin): void;
  /** By its name, not by an alias. False when there was nothing to remove. */
  unregister(name: string): boolean;
  /** By name or alias. */
  get(name: string): Tool | undefined;
  /** By name or alias. Of a tool that declares nothing, empty metadata is found; of an unknown name it is not. */
  metadataFor(name: string): { readonly metadata: ToolMetadata; readonly found: boolean };
  /** Sorted, so that the same tools give the same prompt whoever connected first. */
  names(): readonly string[];
  /** In the order of `names`. */
  all(): readonly Tool[];
  count(): number;
  /** In the order asked for, each once; names that do not exist are left out. */
  filter(names: readonly string[]): readonly Tool[];
  /**
   * Told of each tool that comes or goes, and first of those that are there already. A listener that throws keeps a tool
   * from coming in, since whoever did not learn of it could not judge it. Gives back the way to stop listening.
   */
  listen(listener: RegistryListener): () => void;
}

/** Shape: push, while `register` or `unregister` runs. */
export type RegistryListener = (change: RegistryChange) => void;

/** What happened, without the tool itself: whoever listens may know of tools and not call them. */
export interface RegistryChange {
  readonly type: "registered" | "unregistered";
  readonly name: string;
  readonly metadata: ToolMetadata;
}

interface Entry {
  readonly tool: Tool;
  readonly taken: TakenName;
  readonly metadata: ToolMetadata;
}

export function createRegistry(): Registry {
  const entries = new Map<string, Entry>();
  const byName = new Map<string, Entry>();
  const listeners = new Set<RegistryListener>();

  function add(entry: Entry): void {
    entries.set(entry.tool.name, entry);
    for (const name of entry.taken.names) byName.set(name, entry);
  }

  function remove(entry: Entry): void {
    entries.delete(entry.tool.name);
    for (const name of entry.taken.names) byName.delete(name);
  }

  function sorted(): readonly Entry[] {
    return [...entries.values()].toSorted((a, b) => (a.tool.name < b.tool.name ? -1 : 1));
  }

  return {
    register(tool, origin) {
      const hint =
        toolProblem(tool) ?? lookAlikeProblem(takenBy(tool, origin), takenNames(entries));
      if (hint !== undefined) throw refused(tool, hint);
      const kept = origin === undefined ? tool : externalTool(tool, origin.operator);
      const metadata = metadataOf(kept);
      const entry = { tool: kept, taken: takenBy(tool, origin), metadata };
      add(entry);
      const told: RegistryListener[] = [];
      try {
        for (const listener of [...listeners]) {
          listener(change("registered", entry));
          told.push(listener);
        }
      } catch (error) {
        remove(entry);
        for (const listener of told) tellQuietly(listener, change("unregistered", entry));
        throw refused(
          tool,
          "A listener did not take the tool in, so it was not registered.",
          error,
        );
      }
    },
    unregister(name) {
      const entry = entries.get(name);
      if (entry === undefined) return false;
      remove(entry);
      for (const listener of [...listeners]) tellQuietly(listener, change("unregistered", entry));
      return true;
    },
    get: (name) => byName.get(name)?.tool,
    metadataFor(name) {
      const entry = byName.get(name);
      return { metadata: entry?.metadata ?? NO_METADATA, found: entry !== undefined };
    },
    names: () => sorted().map(({ tool }) => tool.name),
    all: () => sorted().map(({ tool }) => tool),
    count: () => entries.size,
    filter(names) {
      const found = names
        .map((name) => byName.get(name)?.tool)
        .filter((tool) => tool !== undefined);
      return [...new Set(found)];
    },
    listen(listener) {
      for (const entry of sorted()) listener(change("registered", entry));
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
  };
}

function change(type: RegistryChange["type"], { tool, metadata }: Entry): RegistryChange {
  return { type, name: tool.name, metadata };
}

/** What is gone is gone: nobody can object. */
function tellQuietly(listener: RegistryListener, news: RegistryChange): void {
  try {
    listener(news);
  } catch {
    // A permission engine that keeps a class too long is stricter than needed, never looser.
  }
}

function takenNames(entries: ReadonlyMap<string, Entry>): TakenName[] {
  return [...entries.values()].map(({ taken }) => taken);
}

function takenBy(tool: Tool, origin: ExternalOrigin | undefined): TakenName {
  return { names: [tool.name, ...metadataOf(tool).aliases], server: origin?.server };
}

function refused(tool: Partial<Tool> | null, hint: string, cause?: unknown): SallyportError {
  return new SallyportError("invalid_input", { tool: String(tool?.name), hint }, cause);
}
