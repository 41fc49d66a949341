import { SallyportError } from "../model/errors.ts";
import type { JsonObject } from "../util/json.ts";
import { capabilityOf } from "./capability.ts";
import type { DescriptionContext, Tool } from "./tool.ts";

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
