import { isDryRunnable } from "./safety-level.ts";
import type { DryRun, Tool, ToolCall } from "./tool.ts";

/**
 * Asks a tool what a call would do. For whoever shows previews: needs no approval and starts no execution. The tool gets
 * neither idempotency key nor fence, so it cannot take the question for an attempt. Undefined when it has no dry run;
 * what the dry run throws is thrown on.
 */
export async function previewCall(tool: Tool, call: ToolCall): Promise<DryRun | undefined> {
  if (!isDryRunnable(tool)) return undefined;
  return tool.dryRun({ ...call, context: { ...call.context, idempotencyKey: "", fence: 0 } });
}
