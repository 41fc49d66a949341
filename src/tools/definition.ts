import { SallyportError } from "../model/errors.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import { isDeepFrozen, type JsonObject, type JsonValue } from "../util/json.ts";
import { capabilityOf, metadataOf } from "./safety.ts";
import type { DescriptionContext, Tool } from "./tool.ts";

/** Descriptions may depend on the context; the one that is hashed is asked for in this one. */
const FIXED_CONTEXT = Object.freeze({ workingDirectory: "" });

export interface DefinitionOptions {
  /** Which server the tool comes from and how it was recognised, for instance its address and key. */
  readonly server?: string;
}

/**
 * Everything about a tool that a person agreed to when approving a call of it, as data that can be kept (T5, T10). What
 * the functions do is not in it: that is what `version` stands for. Throws invalid_input when it cannot be written down,
 * since what cannot be pinned cannot be approved.
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
      { tool: tool.name, hint: `Its definition cannot be written down: ${errorText(error)}` },
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

/** It is asked for twice per call. Of a tool that cannot change only the description has to be looked at again. */
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
    const hint = `Its description cannot be made: ${errorText(error)}`;
    throw new SallyportError("invalid_input", { tool: tool.name, hint }, error);
  }
}

/** One place where two definitions differ, for the person who has to agree to the new one. */
export interface DefinitionChange {
  /** Like `inputSchema.properties.cents.maximum`. */
  readonly path: string;
  /** As JSON, with everything invisible written out; empty when the place did not exist. */
  readonly before: string;
  readonly after: string;
}

/**
 * What changed between two definitions (see `definitionOf`), in the order of their names. Nothing is shortened: a change
 * that is cut off is a change that nobody agreed to. Empty exactly when their hashes are equal.
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

/** Controls, marks that join or turn text, and look-alikes from other alphabets would hide a change (T13). */
function shown(text: string): string {
  return text.replace(/[^\x20-\x7e]/gu, (character) => {
    if (/^[\p{L}\p{N}\p{P}\p{S}]$/u.test(character) && isLatin(character)) return character;
    return `\\u{${(character.codePointAt(0) as number).toString(16)}}`;
  });
}

/** German or French words stay readable; a Cyrillic "а" among Latin letters does not pass for one. */
function isLatin(character: string): boolean {
  return /^[\p{Script=Latin}\p{Script=Common}]$/u.test(character);
}

/** The reserved input key in which the agent states how sure it is. The confidence gate takes it out again. */
export const CONFIDENCE_KEY = "_confidence";

export interface DescribeOptions {
  readonly context?: DescriptionContext;
  /** Another name for the reserved key; the gate must be given the same. */
  readonly confidenceKey?: string;
}

/**
 * The description as the model gets it, asked for anew each time because it may have changed. It ends with a hint for
 * tools that ask for confidence. A description that cannot be made costs this tool its text and not the others theirs.
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
 * The input schema as the model gets it. A model that keeps to schemas could not add the reserved key otherwise; the tool's
 * own schema stays clean, and the gate removes the key before it is used. Throws invalid_input for a tool that has a
 * property of that name itself.
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

/** The tool's own words, or a plain remark when there are none. */
export function ownDescription(
  tool: Tool,
  context: DescriptionContext = { workingDirectory: "" },
): string {
  try {
    const text: unknown = tool.description(context);
    if (typeof text === "string") return text;
  } catch {
    // The remark below says all that matters to the model.
  }
  return `The description of "${tool.name}" cannot be shown at the moment.`;
}
