import { type Capability, capabilityOf, metadataOf, type ToolMetadata } from "./safety.ts";

import type { Tool } from "./tool.ts";

/** Where a tool of another server comes from, and what our own operator says of it. */
export interface ExternalOrigin {
  /** As the operator named it; the names of its tools start with it. */
  readonly server: string;
  /** What the operator has checked. The only thing that can lower the care. */
  readonly operator?: OperatorWord;
}

export interface OperatorWord
  extends Partial<Omit<ToolMetadata, "aliases" | "searchHint">>,
    Partial<Omit<Capability, "affects">> {
  readonly idempotency?: "keyed" | "none";
}

/**
 * A tool of a remote server as we use it (T12). What the server says of it counts where it asks for more care, and is
 * dropped where it asks for less: that it only reads, may run in parallel, may be repeated, belongs to a class whose check
 * it can pass, or how it is to be called in the audit trail. Those are the operator's to say; else it is a `generic` tool
 * that a rule or a person lets through. The declarations are copied once, so a later change of mind has no effect.
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
    ...(tool.version === undefined ? {} : { version: tool.version }),
  } satisfies Tool);
}

/** What is implemented stays so: those functions are the adapter's and not the server's. Bound, as they may be methods. */
function contractsOf(
  tool: Tool,
): Pick<Tool, "dryRun" | "generateUndo" | "probe" | "stateVersion" | "resources"> {
  return {
    ...(tool.dryRun && { dryRun: tool.dryRun.bind(tool) }),
    ...(tool.generateUndo && { generateUndo: tool.generateUndo.bind(tool) }),
    ...(tool.probe && { probe: tool.probe.bind(tool) }),
    ...(tool.stateVersion && { stateVersion: tool.stateVersion.bind(tool) }),
    ...(tool.resources && { resources: tool.resources.bind(tool) }),
  };
}
