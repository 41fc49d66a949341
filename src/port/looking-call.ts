import type { SessionId } from "../model/decision.ts";
import type { ToolCall } from "../tools/tool.ts";
import type { JsonValue } from "../util/json.ts";
import { TimeoutError, type Timers } from "../util/timers.ts";

const LOOK_MS = 60_000;

export interface LookingFacts {
  readonly tenant: string;
  readonly sessionId: SessionId;
  readonly callId: string;
  readonly input: JsonValue;
  readonly workingDirectory: string;
  /** Undefined: the places of a call that was made earlier are not kept, and only versions are compared. */
  readonly places: readonly string[] | undefined;
}

/**
 * A call that only looks (dry run, version of the target): it has no key and no fence, because it changes nothing. Its
 * signal is aborted when the look takes too long.
 */
export async function whileLooking<Seen>(
  { tenant, sessionId, callId, input, workingDirectory, places }: LookingFacts,
  timers: Timers,
  look: (call: ToolCall) => Promise<Seen>,
): Promise<Seen> {
  const stop = new AbortController();
  const cancel = timers.after(LOOK_MS, () => stop.abort(new TimeoutError(LOOK_MS)));
  const context = {
    tenant,
    sessionId,
    signal: stop.signal,
    workingDirectory,
    places,
    progress: () => {},
    idempotencyKey: "",
    fence: 0,
  };
  try {
    return await look({ callId, input, context });
  } finally {
    cancel();
  }
}
