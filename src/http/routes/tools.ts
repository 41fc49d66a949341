import { z } from "zod";
import { definitionHash, describeTool, inputSchemaForModel } from "../../tools/definition.ts";
import { capabilityOf, metadataOf, SAFETY_CLASSES, safetyClassOf } from "../../tools/safety.ts";
import type { Tool } from "../../tools/tool.ts";
import { jsonRoute, RULES } from "../route.ts";
import { notFound } from "../session-book.ts";
import { jsonObject, list, NO_INPUT, name } from "../wire/common.ts";

const tool = z.object({
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

function wireTool(one: Tool): z.output<typeof tool> {
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

export const toolRoutes = {
  "tools.list": jsonRoute({
    summary: "List all tools with their safety class and definition.",
    rule: RULES.everybody,
    of: "none",
    input: NO_INPUT,
    answer: z.object({ items: list(tool) }),
    handle: async (_, { gate }) => ({ items: gate.tools.all().map(wireTool) }),
  }),
  "tools.get": jsonRoute({
    summary: "Get a tool by name or alias.",
    rule: RULES.everybody,
    of: "none",
    input: z.strictObject({ name }),
    answer: tool,
    async handle(input, { gate }) {
      const found = gate.tools.get(input.name);
      if (found === undefined) throw notFound(input.name);
      return wireTool(found);
    },
  }),
};
