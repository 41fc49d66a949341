import { SallyportError } from "../model/errors.ts";
import { canonicalJson } from "../util/canonical-json.ts";
import { isDeepFrozen } from "../util/deep-freeze.ts";
import { errorText } from "../util/error-text.ts";
import { sha256Hex } from "../util/hash.ts";
import type { JsonObject } from "../util/json.ts";
import { capabilityOf } from "./capability.ts";
import { metadataOf } from "./metadata.ts";
import type { Tool } from "./tool.ts";

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
