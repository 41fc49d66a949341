import { SallyportError } from "../model/errors.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import { isDeepFrozen, type JsonObject, type JsonValue } from "../util/json.ts";
import { capabilityOf, metadataOf } from "./safety.ts";
import type { DescriptionContext, Tool } from "./tool.ts";

/** Descriptions may depend on the context; the hashed one is created with this context. */
const FIXED_CONTEXT = Object.freeze({ workingDirectory: "" });

export interface DefinitionOptions {
  /** The server of the tool and how it was identified, for instance its address and key. */
  readonly server?: string;
}

/**
 * Everything about a tool that a person approves with a call of it, as storable data (T5, T10). The behaviour of its
 * functions is not included: `version` stands for it. Throws invalid_input when it cannot be serialised, since what
 * cannot be pinned cannot be approved.
 */
export function definitionOf(tool: Tool, options: DefinitionOptions = {}): JsonObject {
  const definition = wholeOf(tool, fixedDescription(tool), options);
  canonicalOf(tool, definition);
  return structuredClone(definition) as unknown as JsonObject;
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
  const description = fixedDescription(tool);
  const before = hashes.get(tool);
  if (before?.description === description && before.server === options.server) return before.hash;
  const hash = sha256Hex(canonicalOf(tool, wholeOf(tool, description, options)));
  if (isImmutable(tool)) hashes.set(tool, { description, server: options.server, hash });
  return hash;
}

/** Computed twice per call. For an immutable tool only the description has to be checked again. */
const hashes = new WeakMap<
  Tool,
  { description: string; server: string | undefined; hash: string }
>();

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

/** The reserved input key for the agent's confidence. The confidence gate removes it. */
export const CONFIDENCE_KEY = "_confidence";

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
  const { confidenceMin } = capabilityOf(tool);
  return confidenceMin > 0 ? `${text}\n\n${confidenceHint(confidenceKey, confidenceMin)}` : text;
}

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
  const { confidenceMin } = capabilityOf(tool);
  if (!(confidenceMin > 0)) return tool.inputSchema;
  const { properties = {}, required = [] } = tool.inputSchema;
  if (Object.hasOwn(properties as JsonObject, key)) {
    const hint = `"${key}" is reserved for the agent's confidence. Rename the tool's property, or set another confidenceKey.`;
    throw new SallyportError("invalid_input", { tool: tool.name, hint });
  }
  const confidence = {
    type: "number",
    minimum: 0,
    maximum: 100,
    description: confidenceHint(key, confidenceMin),
  };
  return {
    ...tool.inputSchema,
    properties: { ...(properties as JsonObject), [key]: confidence },
    required: [...(required as string[]), key],
  };
}

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
