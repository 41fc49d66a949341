import { definedFields } from "../util/defined-fields.ts";
import { type Capability, capabilityOf, metadataOf, type ToolMetadata } from "./safety.ts";

import type { Tool } from "./tool.ts";

/** The origin of a tool of another server, and the operator's declarations about it. */
export interface ExternalOrigin {
  /** The server's name, chosen by the operator; the names of its tools start with it. */
  readonly server: string;
  /** What the operator has verified. Only this can reduce the safety requirements. */
  readonly operator?: OperatorWord;
}

export interface OperatorWord
  extends Partial<Omit<ToolMetadata, "aliases" | "searchHint">>,
    Partial<Omit<Capability, "affects">> {
  readonly idempotency?: "keyed" | "none";
}

/**
 * Wraps a tool of a remote server (T12). The server's declarations count where they are stricter, and are dropped where
 * they are more lenient: that it only reads, may run in parallel, may be repeated, has a permission class, or a name
 * for the audit log. Those come from the operator; otherwise it is a `generic` tool that a rule or a person allows. The
 * declarations are copied once, so later changes have no effect.
 */
export function externalTool(tool: Tool, operator: OperatorWord = {}): Tool {
  const claimed = { ...metadataOf(tool), ...capabilityOf(tool) };
  const metadata: ToolMetadata = {
    effect: operator.effect ?? "",
    concurrencySafe: operator.concurrencySafe ?? false,
    readOnly: operator.readOnly ?? false,
    destructive: operator.destructive === true || claimed.destructive,
    aliases: [],
    searchHint: claimed.searchHint,
    permissionClass: operator.permissionClass || "generic",
    auditOperation: operator.auditOperation ?? "",
  };
  const capability: Capability = {
    confidenceMin: Math.max(operator.confidenceMin ?? 0, claimed.confidenceMin),
    checkpoint: operator.checkpoint === true || claimed.checkpoint,
    reverseThinking: operator.reverseThinking === true || claimed.reverseThinking,
    undoMethod: operator.undoMethod ?? "",
    undoTool: operator.undoTool ?? "",
    affects: [...claimed.affects],
  };
  return Object.freeze({
    name: tool.name,
    inputSchema: tool.inputSchema,
    description: (context) => tool.description(context),
    parseInput: (input) => tool.parseInput(input),
    execute: (call) => tool.execute(call),
    metadata: Object.freeze(metadata),
    capability: Object.freeze(capability),
    ...contractsOf(tool),
    idempotency: operator.idempotency ?? "none",
    ...definedFields({ version: tool.version }),
  } satisfies Tool);
}

/** Implemented functions are kept: they belong to the adapter, not the server. Bound, because they may be methods. */
function contractsOf(
  tool: Tool,
): Pick<Tool, "dryRun" | "generateUndo" | "probe" | "stateVersion" | "resources"> {
  return definedFields({
    dryRun: tool.dryRun?.bind(tool),
    generateUndo: tool.generateUndo?.bind(tool),
    probe: tool.probe?.bind(tool),
    stateVersion: tool.stateVersion?.bind(tool),
    resources: tool.resources?.bind(tool),
  });
}
