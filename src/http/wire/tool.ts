import { z } from "zod";
import { capabilityOf } from "../../tools/capability.ts";
import { definitionHash } from "../../tools/definition-hash.ts";
import { describeTool, inputSchemaForModel } from "../../tools/describe-tool.ts";
import { metadataOf } from "../../tools/metadata.ts";
import { SAFETY_CLASSES, safetyClassOf } from "../../tools/safety-class.ts";
import type { Tool } from "../../tools/tool.ts";
import { jsonObject, list } from "./common.ts";

export const tool = z.object({
  name: z.string(),
  /** The tool's own words. */
  description: z.string(),
  safetyClass: z.enum(SAFETY_CLASSES),
  definitionHash: z.string(),
  metadata: z.object({
    effect: z.string(),
    concurrencySafe: z.boolean(),
    readOnly: z.boolean(),
    destructive: z.boolean(),
    aliases: list(z.string()),
    searchHint: z.string(),
    permissionClass: z.string(),
    auditOperation: z.string(),
  }),
  capability: z.object({
    confidenceMin: z.number(),
    checkpoint: z.boolean(),
    reverseThinking: z.boolean(),
    undoMethod: z.string(),
    undoTool: z.string(),
    affects: list(z.string()),
  }),
  has: z.object({
    dryRun: z.boolean(),
    undo: z.boolean(),
    probe: z.boolean(),
    stateVersion: z.boolean(),
    idempotencyKey: z.boolean(),
  }),
  version: z.string().nullable(),
  /** As a model gets it. */
  inputSchema: jsonObject,
});

export function wireTool(one: Tool): z.output<typeof tool> {
  return {
    name: one.name,
    description: describeTool(one),
    safetyClass: safetyClassOf(one),
    definitionHash: definitionHash(one),
    metadata: metadataOf(one),
    capability: capabilityOf(one),
    has: {
      dryRun: one.dryRun !== undefined,
      undo: one.generateUndo !== undefined,
      probe: one.probe !== undefined,
      stateVersion: one.stateVersion !== undefined,
      idempotencyKey: one.idempotency === "keyed",
    },
    version: one.version ?? null,
    inputSchema: inputSchemaForModel(one),
  };
}
