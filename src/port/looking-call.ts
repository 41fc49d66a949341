import type { SessionId } from "../model/decision.ts";
import type { ToolCall } from "../tools/tool.ts";
import type { JsonValue } from "../util/json.ts";

const LOOK_MS = 60_000;

/** A call that only looks (dry run, version of the target): it has no key and no fence, because it changes nothing. */
export function lookingCall(facts: {
  readonly tenant: string;
  readonly sessionId: SessionId;
  readonly callId: string;
  readonly input: JsonValue;
  readonly workingDirectory: string;
}): ToolCall {
  const { tenant, sessionId, callId, input, workingDirectory } = facts;
  return {
    callId,
    input,
    context: {
      tenant,
      sessionId,
      signal: AbortSignal.timeout(LOOK_MS),
      workingDirectory,
      progress: () => {},
      idempotencyKey: "",
      fence: 0,
    },
  };
}
