import { SallyportError } from "../model/errors.ts";
import { canonicalJson } from "../util/canonical-json.ts";
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
  const definition = {
    v: 1,
    name: tool.name,
    description: fixedDescription(tool),
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
    version: tool.version ?? null,
    server: options.server ?? null,
  };
  try {
    canonicalJson(definition);
  } catch (error) {
    throw new SallyportError(
      "invalid_input",
      { tool: tool.name, hint: `Its definition cannot be written down: ${errorText(error)}` },
      error,
    );
  }
  return structuredClone(definition) as unknown as JsonObject;
}

/** SHA-256 of the canonical definition: any change of any field changes it, the order of keys does not. */
export function definitionHash(tool: Tool, options: DefinitionOptions = {}): string {
  return sha256Hex(canonicalJson(definitionOf(tool, options)));
}

function fixedDescription(tool: Tool): string {
  try {
    return tool.description(FIXED_CONTEXT);
  } catch (error) {
    const hint = `Its description cannot be made: ${errorText(error)}`;
    throw new SallyportError("invalid_input", { tool: tool.name, hint }, error);
  }
}
