import { SallyportError } from "../model/errors.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import { deepFreeze, isDeepFrozen, type JsonObject, type JsonValue } from "../util/json.ts";
import type { DescriptionContext, Tool } from "./tool.ts";
import {
  capabilityOf,
  capabilityProblem,
  type ExternalOrigin,
  externalTool,
  metadataOf,
  metadataProblem,
  NO_METADATA,
  type ToolMetadata,
} from "./tool.ts";

/** All tools of every origin. Shape: pulled; changes are pushed to listeners while `register` or `unregister` runs. */
export interface Registry {
  /** Throws invalid_input for a value that is not a tool, an invalid or taken name, or a look-alike. Never replaces. */
  register(tool: Tool, origin?: ExternalOrigin): void;
  /** By name, not by alias. False when there was nothing to remove. */
  unregister(name: string): boolean;
  /** By name or alias. */
  get(name: string): Tool | undefined;
  /** By name or alias. A tool without declarations has empty metadata; an unknown name has none. */
  metadataFor(name: string): { readonly metadata: ToolMetadata; readonly found: boolean };
  /** Sorted, so that the same tools give the same prompt in any order of connection. */
  names(): readonly string[];
  /** In the order of `names`. */
  all(): readonly Tool[];
  count(): number;
  /** In the requested order, each once; unknown names are omitted. */
  filter(names: readonly string[]): readonly Tool[];
  /**
   * Called for each tool that is added or removed, and first for all existing ones. A listener that throws prevents the
   * registration, because a listener that does not know a tool cannot judge it. Returns a function that stops
   * listening.
   */
  listen(listener: RegistryListener): () => void;
}

/** Shape: push, while `register` or `unregister` runs. */
export type RegistryListener = (change: RegistryChange) => void;

/** What happened, without the tool itself: listeners may know tools but not call them. */
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
        throw refused(tool, "A listener rejected the tool, so it was not registered.", error);
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

/** A removal cannot be prevented. */
function tellQuietly(listener: RegistryListener, news: RegistryChange): void {
  try {
    listener(news);
  } catch {
    // A permission engine that keeps a class too long is stricter than needed, never more lenient.
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

const OPTIONAL_FUNCTIONS = [
  "dryRun",
  "generateUndo",
  "probe",
  "stateVersion",
  "resources",
] as const;

/** Why a value of any origin cannot be used as a tool, as a sentence; undefined when it can. */
function toolProblem(value: unknown): string | undefined {
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
    // A member that is not a function would count as implemented and fail later.
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

/** The names of a tool, its own first, and its remote server, if any. */
interface TakenName {
  readonly names: readonly string[];
  readonly server: string | undefined;
}

/**
 * Why a tool cannot be added to the existing ones (T11), as a sentence; undefined when it can. A tool's own aliases may
 * look like its name, since they lead to the same tool.
 */
function lookAlikeProblem(newcomer: TakenName, present: readonly TakenName[]): string | undefined {
  const problem = serverProblem(newcomer);
  if (problem !== undefined) return problem;
  for (const name of newcomer.names) {
    const skeleton = nameSkeleton(name);
    for (const other of present.flatMap((tool) => tool.names)) {
      if (other === name)
        return `The name "${name}" is taken. Unregister that tool first, or choose another name.`;
      if (nameSkeleton(other) === skeleton) {
        return `"${name}" looks like "${other}", which is registered. Choose a name that people can distinguish from it.`;
      }
    }
  }
  return prefixProblem(newcomer, present);
}

/** A remote server has its own name prefix and provides no other names. */
function serverProblem({ names, server }: TakenName): string | undefined {
  if (server === undefined) return undefined;
  if (nameProblem(server) !== undefined || server.includes(".")) {
    return "A server's name is one part of a tool's name: ASCII letters, digits, hyphens and underscores.";
  }
  const [name = "", ...aliases] = names;
  if (aliases.length > 0)
    return "A tool of another server has no aliases: they could replace local tools.";
  if (!name.startsWith(`${server}.`))
    return `The tools of the server "${server}" are named "${server}.…".`;
  return undefined;
}

/** `glthub.merge` is not a tool of `github`, even if no tool of that name exists. */
function prefixProblem(newcomer: TakenName, present: readonly TakenName[]): string | undefined {
  const prefixes = newcomer.names.map(qualifierOf).filter((prefix) => prefix !== "");
  for (const prefix of prefixes) {
    for (const tool of present) {
      for (const other of tool.names.map(qualifierOf)) {
        if (other === prefix && tool.server !== newcomer.server) {
          return `Names that start with "${prefix}." belong to ${ownerOf(tool)}. Choose another prefix.`;
        }
        if (other !== prefix && nameSkeleton(other) === nameSkeleton(prefix)) {
          return `"${prefix}." looks like "${other}.", which is in use. Choose a prefix that people can distinguish from it.`;
        }
      }
    }
  }
  return undefined;
}

function ownerOf({ server }: TakenName): string {
  return server === undefined ? "tools of our own" : `the server "${server}"`;
}

/** The limit of the MCP specification. Adapters replace the dots with what their model's API accepts. */
const LONGEST_NAME = 128;
const LONGEST_PART = 64;
const NAME =
  /^[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?)*$/;

/** The problem with a tool's name, as a sentence that says what to do; undefined when there is none. */
export function nameProblem(name: unknown): string | undefined {
  if (typeof name !== "string" || name === "") return "A tool needs a name.";
  if (name.length > LONGEST_NAME) return `A tool's name has at most ${LONGEST_NAME} characters.`;
  if (!NAME.test(name)) {
    return (
      "A tool's name is made of ASCII letters, digits, hyphens and underscores, in parts joined by dots, and each part " +
      "begins and ends with a letter or digit, like billing.refund."
    );
  }
  if (name.split(".").some((part) => part.length > LONGEST_PART)) {
    return `Each part of a tool's name has at most ${LONGEST_PART} characters.`;
  }
  return undefined;
}

/** The part before the first dot, for instance the server; empty when there is none. */
export function qualifierOf(name: string): string {
  const dot = name.indexOf(".");
  return dot < 0 ? "" : name.slice(0, dot);
}

/**
 * Reduces a name to what a hurried reader sees (T11): two names with one skeleton are look-alikes, and the registry
 * accepts only one of them. Case and separators are dropped, so that `sendMail`, `send_mail` and `send.mail` are equal;
 * so an adapter may write every separator as `_` without merging two tools. Then the ASCII pairs of Unicode's
 * confusables are folded (0 and O; 1, l and I; rn and m) and four similar ones (vv and w, 2 and Z, 5 and S, 8 and B).
 * Without case, i equals l too. `cl` and `d` stay different: they are not in Unicode's list, and rejecting `ci.run`
 * because of `d.run` would confuse people.
 */
export function nameSkeleton(name: string): string {
  return name
    .toLowerCase()
    .replace(/[._-]/g, "")
    .replace(/[01258i]/g, (character) => LOOKS_LIKE[character] ?? character)
    .replaceAll("rn", "m")
    .replaceAll("vv", "w");
}

const LOOKS_LIKE: Readonly<Record<string, string>> = {
  "0": "o",
  "1": "l",
  i: "l",
  "2": "z",
  "5": "s",
  "8": "b",
};

/** Descriptions may depend on the context; the hashed one is created with this context. */
const FIXED_CONTEXT = Object.freeze({ workingDirectory: "" });

export interface DefinitionOptions {
  /** The server of the tool and how it was identified, for instance its address and key. */
  readonly server?: string;
}

/**
 * Everything about a tool that a person approves with a call of it, as storable data that cannot be changed (T5, T10). The
 * behaviour of its functions is not included: `version` stands for it. Throws invalid_input when it cannot be serialised, since
 * what cannot be pinned cannot be approved.
 */
export function definitionOf(tool: Tool, options: DefinitionOptions = {}): JsonObject {
  const pinned = pinnedOf(tool, options);
  pinned.definition ??= deepFreeze(structuredClone(pinned.whole) as unknown as JsonObject);
  return pinned.definition;
}

function wholeOf(tool: Tool, description: string, options: DefinitionOptions) {
  return {
    v: 1,
    name: tool.name,
    description,
    inputSchema: tool.inputSchema,
    metadata: { ...metadataOf(tool) },
    capability: { ...capabilityOf(tool) },
    contracts: {
      dryRun: tool.dryRun !== undefined,
      generateUndo: tool.generateUndo !== undefined,
      probe: tool.probe !== undefined,
      stateVersion: tool.stateVersion !== undefined,
      resources: tool.resources !== undefined,
    },
    idempotency: tool.idempotency ?? "none",
    ...(tool.undoOnly === true ? { undoOnly: true } : {}),
    ...(tool.execution === "external" ? { execution: "external" } : {}),
    version: tool.version ?? null,
    server: options.server ?? null,
  };
}

function canonicalOf(tool: Tool, definition: object): string {
  try {
    return canonicalJson(definition);
  } catch (error) {
    throw new SallyportError(
      "invalid_input",
      { tool: tool.name, hint: `Its definition cannot be serialised: ${errorText(error)}` },
      error,
    );
  }
}

/** SHA-256 of the canonical definition: any change of any field changes it, the order of keys does not. */
export function definitionHash(tool: Tool, options: DefinitionOptions = {}): string {
  return pinnedOf(tool, options).hash;
}

interface Pinned {
  readonly description: string;
  readonly server: string | undefined;
  readonly whole: object;
  readonly hash: string;
  /** A copy of the whole, once it was asked for. */
  definition?: JsonObject;
}

/** Asked for several times per call. For an immutable tool only the description has to be checked again. */
const pins = new WeakMap<Tool, Pinned>();

function pinnedOf(tool: Tool, options: DefinitionOptions): Pinned {
  const description = fixedDescription(tool);
  const { server } = options;
  const before = pins.get(tool);
  if (before?.description === description && before.server === server) return before;
  const whole = wholeOf(tool, description, options);
  const pinned: Pinned = { description, server, whole, hash: sha256Hex(canonicalOf(tool, whole)) };
  if (isImmutable(tool)) pins.set(tool, pinned);
  return pinned;
}

function isImmutable(tool: Tool): boolean {
  const { inputSchema, metadata, capability } = tool;
  return Object.isFrozen(tool) && [inputSchema, metadata, capability].every(isDeepFrozen);
}

function fixedDescription(tool: Tool): string {
  try {
    return tool.description(FIXED_CONTEXT);
  } catch (error) {
    const hint = `Its description cannot be created: ${errorText(error)}`;
    throw new SallyportError("invalid_input", { tool: tool.name, hint }, error);
  }
}

/** One difference between two definitions, for the person who must approve the new one. */
export interface DefinitionChange {
  /** Like `inputSchema.properties.cents.maximum`. */
  readonly path: string;
  /** As JSON, with invisible characters escaped; empty when the place did not exist. */
  readonly before: string;
  readonly after: string;
}

/**
 * The differences between two definitions (see `definitionOf`), in the order of their names. Nothing is shortened,
 * because a hidden change would be approved unseen. Empty exactly when their hashes are equal.
 */
export function definitionDifference(
  before: JsonObject,
  after: JsonObject,
): readonly DefinitionChange[] {
  return differences(before, after, "");
}

function differences(
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  path: string,
): readonly DefinitionChange[] {
  if (isContainer(before) && isContainer(after) && Array.isArray(before) === Array.isArray(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names]
      .toSorted()
      .flatMap((name) =>
        differences(
          entryOf(before, name),
          entryOf(after, name),
          `${path}${path && "."}${shown(name)}`,
        ),
      );
  }
  const [was, is] = [textOf(before), textOf(after)];
  return was === is ? [] : [{ path, before: was, after: is }];
}

function isContainer(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null;
}

function entryOf(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

function textOf(value: JsonValue | undefined): string {
  return value === undefined ? "" : shown(canonicalJson(value));
}

/** Control characters, joining or reversing marks, and look-alikes from other alphabets would hide a change (T13). */
function shown(text: string): string {
  return text.replace(/[^\x20-\x7e]/gu, (character) => {
    if (/^[\p{L}\p{N}\p{P}\p{S}]$/u.test(character) && isLatin(character)) return character;
    return `\\u{${(character.codePointAt(0) as number).toString(16)}}`;
  });
}

/** German or French words stay readable; a Cyrillic "а" among Latin letters is marked. */
function isLatin(character: string): boolean {
  return /^[\p{Script=Latin}\p{Script=Common}]$/u.test(character);
}

/** The tool with which an agent finds and loads others. */
export const TOOL_SEARCH = "tool_search";

/** The reserved input key for the agent's confidence. The confidence gate removes it. */
export const CONFIDENCE_KEY = "_confidence";

/** The reserved input key for the agent's counter-check of a call that needs one. The gate removes it. */
export const REVERSE_THINKING_KEY = "_reverse_thinking";

export interface DescribeOptions {
  readonly context?: DescriptionContext;
  /** Another name for the reserved key; the gate must use the same. */
  readonly confidenceKey?: string;
}

/**
 * The description for the model, created each time because it may have changed. It ends with a hint for tools that
 * require confidence. A description that throws affects this tool only.
 */
export function describeTool(tool: Tool, options: DescribeOptions = {}): string {
  const { confidenceKey = CONFIDENCE_KEY } = options;
  const text = ownDescription(tool, options.context);
  const { confidenceMin, reverseThinking } = capabilityOf(tool);
  const hints = [
    ...(confidenceMin > 0 ? [confidenceHint(confidenceKey, confidenceMin)] : []),
    ...(reverseThinking ? [REVERSE_THINKING_HINT] : []),
  ];
  return [text, ...hints].join("\n\n");
}

/** Written for the model: what a counter-check is and where it goes. */
export const REVERSE_THINKING_HINT =
  `Safety: argue against this call first, and add that as "${REVERSE_THINKING_KEY}" to the input: an object with step (a label), ` +
  "hiddenAssumptions and failureScenarios (lists of at least one text), verdict (A_holds: go on; B_wins: another way is better; " +
  "depends_on_X: something must be found out first) and reason.";

function confidenceHint(key: string, min: number): string {
  return (
    `Safety: add "${key}" to the input, a number from 0 to 100 that says how sure you are that this call is right. ` +
    `Below ${min}, or without it, the call is refused.`
  );
}

/**
 * The input schema for the model. A model that follows schemas could not add the reserved key otherwise; the tool's own
 * schema is unchanged, and the gate removes the key before use. Throws invalid_input for a tool with a property of that
 * name.
 */
export function inputSchemaForModel(tool: Tool, options: DescribeOptions = {}): JsonObject {
  const { confidenceKey: key = CONFIDENCE_KEY } = options;
  const { confidenceMin, reverseThinking } = capabilityOf(tool);
  const added: Record<string, JsonObject> = {
    ...(confidenceMin > 0 ? { [key]: confidenceSchema(key, confidenceMin) } : {}),
    ...(reverseThinking ? { [REVERSE_THINKING_KEY]: REVERSE_THINKING_SCHEMA } : {}),
  };
  const names = Object.keys(added);
  if (names.length === 0) return tool.inputSchema;
  const { properties = {}, required = [] } = tool.inputSchema;
  const taken = names.find((name) => Object.hasOwn(properties as JsonObject, name));
  if (taken !== undefined) {
    const hint = `"${taken}" is reserved for what the agent says about its call. Rename the tool's property, or set another confidenceKey.`;
    throw new SallyportError("invalid_input", { tool: tool.name, hint });
  }
  return {
    ...tool.inputSchema,
    properties: { ...(properties as JsonObject), ...added },
    required: [...(required as string[]), ...names],
  };
}

function confidenceSchema(key: string, min: number): JsonObject {
  return { type: "number", minimum: 0, maximum: 100, description: confidenceHint(key, min) };
}

const TEXTS = { type: "array", minItems: 1, items: { type: "string" } };
const REVERSE_THINKING_SCHEMA: JsonObject = {
  type: "object",
  description: REVERSE_THINKING_HINT,
  properties: {
    step: { type: "string" },
    hiddenAssumptions: TEXTS,
    failureScenarios: TEXTS,
    verdict: { enum: ["A_holds", "B_wins", "depends_on_X"] },
    reason: { type: "string" },
  },
  required: ["step", "hiddenAssumptions", "failureScenarios", "verdict", "reason"],
  additionalProperties: false,
};

/** The tool's own description, or a plain remark when it has none. */
export function ownDescription(
  tool: Tool,
  context: DescriptionContext = { workingDirectory: "" },
): string {
  try {
    const text: unknown = tool.description(context);
    if (typeof text === "string") return text;
  } catch {
    // The remark below is all that the model needs.
  }
  return `The description of "${tool.name}" cannot be shown at the moment.`;
}
