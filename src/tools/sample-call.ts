import type { JsonValue } from "../util/json.ts";
import type { ToolCall, ToolContext } from "./tool.ts";

/** A call as the engine would make it, for trying a tool out in a test. Nothing is gated, recorded or undone. */
export function sampleCall(input: JsonValue, context: Partial<ToolContext> = {}): ToolCall {
  return {
    callId: "call-1",
    input,
    context: {
      tenant: "tenant-1",
      sessionId: "session-1",
      signal: new AbortController().signal,
      workingDirectory: "",
      progress: () => {},
      idempotencyKey: "key-1",
      fence: 1,
      ...context,
    },
  };
}
